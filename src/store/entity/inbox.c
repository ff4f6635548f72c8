/* What an entity has to deal with, as rows. */
#include "store/entity/inbox.h"

enum err inbox_insert(struct db *db, const struct inbox_signal *s)
{
    static const char SQL[] = "INSERT INTO inbox (entity, seq, name, payload, asks, at)"
                              " VALUES ($1, $2, $3, $4, $5, $6)";
    return DB_EXEC(db, SQL, NULL, DB_I(s->entity), DB_I(s->seq), DB_T(s->name), DB_T(s->payload),
                   DB_I(s->asks), DB_I(s->at));
}

enum err inbox_list(struct db *db, int64_t entity, int64_t after, int64_t through, int64_t limit,
                    inbox_each *each, void *ctx)
{
    static const char SQL[] = "SELECT entity, seq, name, payload, asks, at FROM inbox"
                              " WHERE entity = $1 AND seq > $2 AND seq <= $3"
                              " ORDER BY seq LIMIT $4";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity), DB_I(after), DB_I(through), DB_I(limit));
    bool more = true;
    while (more && db_next(rows)) {
        struct inbox_signal s = {db_int(rows, 0), db_int(rows, 1),      db_str(rows, 2),
                                 db_str(rows, 3), db_int(rows, 4) != 0, db_time(rows, 5)};
        more = each(ctx, &s);
    }
    return db_rows_end(rows);
}

enum err inbox_remove(struct db *db, int64_t entity, int64_t through)
{
    static const char SQL[] = "DELETE FROM inbox WHERE entity = $1 AND seq <= $2";
    return DB_EXEC(db, SQL, NULL, DB_I(entity), DB_I(through));
}

/* --- updates --- */

enum err entity_updates_insert(struct db *db, const struct entity_update *u)
{
    static const char SQL[] =
        "INSERT INTO entity_updates (entity, seq, name, outcome, rejected, at, decided_at)"
        " VALUES ($1, $2, $3, NULL, 0, $4, NULL)";
    return DB_EXEC(db, SQL, NULL, DB_I(u->entity), DB_I(u->seq), DB_T(u->name), DB_I(u->at));
}

enum err entity_updates_find(struct db *db, int64_t entity, int64_t seq, struct arena *arena,
                             bool *ret_found, struct entity_update *ret)
{
    static const char SQL[] =
        "SELECT entity, seq, name, outcome, rejected, at, decided_at FROM entity_updates"
        " WHERE entity = $1 AND seq = $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity), DB_I(seq));
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        *ret = (struct entity_update){
            .entity = db_int(rows, 0),
            .seq = db_count(rows, 1),
            .name = db_str(rows, 2),
            .outcome = db_str(rows, 3),
            .rejected = db_int(rows, 4) != 0,
            .at = db_time(rows, 5),
            .decided_at = db_time_or(rows, 6, -1),
        };
        full = !(arena_keep(arena, &ret->name) && arena_keep(arena, &ret->outcome));
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err entity_updates_decide(struct db *db, const struct entity_update *u, bool *ret_decided)
{
    static const char SQL[] =
        "UPDATE entity_updates SET outcome = $3, rejected = $4, decided_at = $5"
        " WHERE entity = $1 AND seq = $2 AND outcome IS NULL";
    int64_t changed = 0;
    enum err e = DB_EXEC(db, SQL, &changed, DB_I(u->entity), DB_I(u->seq), DB_T(u->outcome),
                         DB_I(u->rejected), DB_I(u->decided_at));
    *ret_decided = changed == 1;
    return e;
}

enum err entity_updates_decide_rest(struct db *db, const struct entity_update *u, int64_t after,
                                    int64_t *ret_count)
{
    static const char SQL[] =
        "UPDATE entity_updates SET outcome = $4, rejected = $5, decided_at = $6"
        " WHERE entity = $1 AND seq > $2 AND seq <= $3 AND outcome IS NULL";
    return DB_EXEC(db, SQL, ret_count, DB_I(u->entity), DB_I(after), DB_I(u->seq), DB_T(u->outcome),
                   DB_I(u->rejected), DB_I(u->decided_at));
}

enum err entity_updates_remove(struct db *db, int64_t entity, int64_t through)
{
    static const char SQL[] = "DELETE FROM entity_updates WHERE entity = $1 AND seq <= $2";
    return DB_EXEC(db, SQL, NULL, DB_I(entity), DB_I(through));
}

/* --- timers --- */

enum err entity_timers_put(struct db *db, const struct entity_timer *t)
{
    static const char SQL[] =
        "INSERT INTO entity_timers (entity, name, due_at, payload, given)"
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (entity, name) DO UPDATE SET"
        " due_at = excluded.due_at, payload = excluded.payload, given = excluded.given";
    return DB_EXEC(db, SQL, NULL, DB_I(t->entity), DB_T(t->name), DB_I(t->due_at), DB_T(t->payload),
                   DB_I(t->given));
}

enum err entity_timers_remove(struct db *db, int64_t entity, struct str name)
{
    static const char SQL[] = "DELETE FROM entity_timers WHERE entity = $1 AND name = $2";
    return DB_EXEC(db, SQL, NULL, DB_I(entity), DB_T(name));
}

enum err entity_timers_remove_all(struct db *db, int64_t entity)
{
    static const char SQL[] = "DELETE FROM entity_timers WHERE entity = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(entity));
}

enum err entity_timers_remove_given(struct db *db, int64_t entity)
{
    static const char SQL[] = "DELETE FROM entity_timers WHERE entity = $1 AND given = 1";
    return DB_EXEC(db, SQL, NULL, DB_I(entity));
}

enum err entity_timers_give(struct db *db, int64_t entity, int64_t now_ms)
{
    static const char SQL[] =
        "UPDATE entity_timers SET given = 1 WHERE entity = $1 AND due_at <= $2";
    return DB_EXEC(db, SQL, NULL, DB_I(entity), DB_I(now_ms));
}

enum err entity_timers_take_back(struct db *db, int64_t entity)
{
    static const char SQL[] = "UPDATE entity_timers SET given = 0 WHERE entity = $1 AND given = 1";
    return DB_EXEC(db, SQL, NULL, DB_I(entity));
}

enum err entity_timers_next(struct db *db, int64_t entity, int64_t *ret_due_at)
{
    static const char SQL[] =
        "SELECT MIN(due_at) FROM entity_timers WHERE entity = $1 AND given = 0";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity));
    *ret_due_at = db_next(rows) ? db_int_or(rows, 0, -1) : -1;
    return db_rows_end(rows);
}

enum err entity_timers_list(struct db *db, int64_t entity, bool only_given, entity_timer_each *each,
                            void *ctx)
{
    static const char SQL[] = "SELECT entity, name, due_at, payload, given FROM entity_timers"
                              " WHERE entity = $1 AND given >= $2 ORDER BY due_at, name";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(entity), DB_I(only_given));
    while (db_next(rows)) {
        struct entity_timer t = {db_int(rows, 0), db_str(rows, 1), db_time(rows, 2),
                                 db_str(rows, 3), db_int(rows, 4) != 0};
        each(ctx, &t);
    }
    return db_rows_end(rows);
}
