/* Removes what entities no longer need, a few rows at a time. */
#include "store/entity/entity_sweep.h"

#include "store/run/jobs.h"

enum err entity_sweeps_next(struct db *db, int64_t after, bool *ret_found,
                            struct entity_sweep_row *ret)
{
    static const char SQL[] = "SELECT entity, through, deleted, deleted_at FROM entity_sweeps"
                              " WHERE entity > $1 ORDER BY entity LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(after));
    *ret_found = db_next(rows);
    if (*ret_found)
        *ret = (struct entity_sweep_row){.entity = db_int(rows, 0),
                                         .through = db_int(rows, 1),
                                         .deleted = db_int(rows, 2) != 0,
                                         .deleted_at = db_int_or(rows, 3, 0)};
    return db_rows_end(rows);
}

enum err entity_sweeps_done(struct db *db, int64_t entity)
{
    static const char SQL[] = "DELETE FROM entity_sweeps WHERE entity = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(entity));
}

/* --- old generations --- */

/* The oldest generation, and where the next one begins. */
struct oldest {
    int64_t entity;
    int64_t generation;
    int64_t first_call;
    int64_t next_event;
    int64_t next_call;
    int64_t calls; /* of all generations */
};

/* The current generation has no later one, and is not returned. */
static enum err find_oldest(struct db *db, int64_t entity, bool *ret_found, struct oldest *ret)
{
    static const char SQL[] = "SELECT g.generation, g.first_event, g.first_call, e.calls"
                              " FROM entity_generations g JOIN entities e ON e.num = g.entity"
                              " WHERE g.entity = $1 ORDER BY g.generation LIMIT 2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity));
    *ret = (struct oldest){.entity = entity};
    *ret_found = db_next(rows);
    if (*ret_found) {
        ret->generation = db_int(rows, 0);
        ret->first_call = db_int(rows, 2);
        ret->calls = db_int(rows, 3);
        *ret_found = db_next(rows);
    }
    if (*ret_found) {
        ret->next_event = db_int(rows, 1);
        ret->next_call = db_int(rows, 2);
    }
    return db_rows_end(rows);
}

enum err entity_sweep_events(struct db *db, int64_t entity, int64_t held_from, int64_t rows,
                             int64_t *ret_removed)
{
    static const char SQL[] = "DELETE FROM timeline WHERE run = $1 AND seq IN (SELECT seq"
                              " FROM timeline WHERE run = $1 AND seq < $2 ORDER BY seq LIMIT $3)";
    return DB_EXEC(db, SQL, ret_removed, DB_I(entity), DB_I(held_from), DB_I(rows));
}

static enum err remove_ordinals(struct db *db, int64_t entity, int64_t from, int64_t to,
                                int64_t rows, int64_t *removed)
{
    static const char SQL[] =
        "DELETE FROM jobs WHERE run = $1 AND ordinal IN (SELECT ordinal FROM jobs"
        " WHERE run = $1 AND ordinal >= $2 AND ordinal <= $3 ORDER BY ordinal LIMIT $4)";
    int64_t count = 0;
    if (from > to || rows <= *removed)
        return ERR_OK;
    enum err e =
        DB_EXEC(db, SQL, &count, DB_I(entity), DB_I(from), DB_I(to), DB_I(rows - *removed));
    *removed += count;
    return e;
}

static int64_t ordinal_of(int64_t call)
{
    return (call - 1) % JOB_ORDINAL_MAX + 1;
}

/* The jobs of calls from `first` to `last`, adding to *removed up to `rows`. */
static enum err remove_calls(struct db *db, int64_t entity, int64_t first, int64_t last,
                             int64_t rows, int64_t *removed)
{
    if (first > last)
        return ERR_OK;
    int64_t from = ordinal_of(first);
    int64_t to = ordinal_of(last);
    if (from <= to)
        return remove_ordinals(db, entity, from, to, rows, removed);
    enum err e = remove_ordinals(db, entity, from, JOB_ORDINAL_MAX, rows, removed);
    return e == ERR_OK ? remove_ordinals(db, entity, 1, to, rows, removed) : e;
}

/* But for those whose ordinals later calls have been given. A call that is open is not among them:
 * it belongs to the generation that began last. */
static enum err remove_jobs(struct db *db, const struct oldest *o, int64_t rows,
                            int64_t *ret_removed)
{
    int64_t first = MAX(o->first_call, o->calls - JOB_ORDINAL_MAX + 1);
    *ret_removed = 0;
    return remove_calls(db, o->entity, first, o->next_call - 1, rows, ret_removed);
}

static enum err remove_record(struct db *db, const struct oldest *o)
{
    static const char SQL[] =
        "DELETE FROM entity_generations WHERE entity = $1 AND generation = $2";
    return DB_EXEC(db, SQL, NULL, DB_I(o->entity), DB_I(o->generation));
}

/* *ret_whole: nothing of it is left, and there was room for that. */
static enum err remove_generation(struct db *db, const struct oldest *o, int64_t held_from,
                                  int64_t rows, int64_t *ret_removed, bool *ret_whole)
{
    int64_t events = 0;
    int64_t jobs = 0;
    enum err e = entity_sweep_events(db, o->entity, MIN(o->next_event, held_from), rows, &events);
    if (e == ERR_OK && events < rows && held_from >= o->next_event)
        e = remove_jobs(db, o, rows - events, &jobs);
    *ret_whole = e == ERR_OK && events + jobs < rows && held_from >= o->next_event;
    if (*ret_whole)
        e = remove_record(db, o);
    *ret_removed = events + jobs + *ret_whole;
    return e;
}

enum err entity_sweep_generations(struct db *db, const struct entity_sweep_row *row,
                                  int64_t held_from, int64_t rows, int64_t *ret_removed,
                                  bool *ret_gone)
{
    *ret_removed = 0;
    *ret_gone = false;
    while (*ret_removed < rows) {
        struct oldest o;
        bool found = false;
        bool whole = false;
        int64_t removed = 0;
        enum err e = find_oldest(db, row->entity, &found, &o);
        *ret_gone = e == ERR_OK && (!found || o.generation > row->through);
        if (e != ERR_OK || *ret_gone)
            return e;
        e = remove_generation(db, &o, held_from, rows - *ret_removed, &removed, &whole);
        *ret_removed += removed;
        if (e != ERR_OK || !whole)
            return e;
    }
    return ERR_OK;
}

/* --- all of it --- */

static const char *const PARTS[] = {
    "DELETE FROM inbox WHERE entity = $1 AND seq IN"
    " (SELECT seq FROM inbox WHERE entity = $1 ORDER BY seq LIMIT $2)",
    "DELETE FROM entity_updates WHERE entity = $1 AND seq IN"
    " (SELECT seq FROM entity_updates WHERE entity = $1 ORDER BY seq LIMIT $2)",
    "DELETE FROM entity_timers WHERE entity = $1 AND name IN"
    " (SELECT name FROM entity_timers WHERE entity = $1 ORDER BY name LIMIT $2)",
    "DELETE FROM entity_starts WHERE entity = $1 AND num IN"
    " (SELECT num FROM entity_starts WHERE entity = $1 ORDER BY num LIMIT $2)",
    "DELETE FROM entity_states WHERE entity IN"
    " (SELECT entity FROM entity_states WHERE entity = $1 LIMIT $2)",
    "DELETE FROM jobs WHERE run = $1 AND ordinal IN"
    " (SELECT ordinal FROM jobs WHERE run = $1 ORDER BY ordinal LIMIT $2)",
    "DELETE FROM entity_generations WHERE entity = $1 AND generation IN"
    " (SELECT generation FROM entity_generations WHERE entity = $1 ORDER BY generation LIMIT $2)",
};

enum err entity_sweep_deleted(struct db *db, int64_t entity, int64_t rows, int64_t *ret_removed,
                              bool *ret_gone)
{
    int64_t left = rows;
    enum err e = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(PARTS) && e == ERR_OK && left > 0; i++) {
        int64_t changed = 0;
        e = DB_EXEC(db, PARTS[i], &changed, DB_I(entity), DB_I(left));
        left -= changed;
    }
    *ret_removed = rows - left;
    *ret_gone = e == ERR_OK && left > 0;
    return e;
}
