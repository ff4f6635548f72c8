/* Tenants as rows. */
#include "store/tenants.h"

#include "domain/run.h"

#define COLUMNS                                                                                 \
    "num, id, name, max_concurrent_runs, max_queued_runs, at_limit, idempotency_retention_ms, " \
    "weight, gate, rate_limit, active_runs, queued_runs, created_at, updated_at"

/* False when the arena is full. */
static bool read_row(const struct db_rows *r, struct arena *arena, struct tenant *t)
{
    *t = (struct tenant){
        .num = db_int(r, 0),
        .id = db_str(r, 1),
        .name = db_str(r, 2),
        .max_concurrent_runs = db_int_or(r, 3, -1),
        .max_queued_runs = db_int_or(r, 4, -1),
        .at_limit = at_limit_of(db_str(r, 5)),
        .idempotency_retention_ms = db_int_or(r, 6, -1),
        .weight = db_int(r, 7),
        .gate = db_str(r, 8),
        .rate_limit = db_str(r, 9),
        .active_runs = db_int(r, 10),
        .queued_runs = db_int(r, 11),
        .created_at = db_int(r, 12),
        .updated_at = db_int(r, 13),
    };
    assert(t->at_limit < AT_LIMIT_COUNT);
    return arena_keep(arena, &t->id) && arena_keep(arena, &t->name) &&
           arena_keep(arena, &t->gate) && arena_keep(arena, &t->rate_limit);
}

static enum err read_one(struct db_rows *rows, struct arena *arena, bool *ret_found,
                         struct tenant *ret)
{
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found)
        full = !read_row(rows, arena, ret);
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err tenants_find(struct db *db, struct str id, struct arena *arena, bool *ret_found,
                      struct tenant *ret)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM tenants WHERE id = $1";
    return read_one(DB_QUERY(db, SQL, DB_T(id)), arena, ret_found, ret);
}

enum err tenants_find_num(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                          struct tenant *ret)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM tenants WHERE num = $1";
    return read_one(DB_QUERY(db, SQL, DB_I(num)), arena, ret_found, ret);
}

enum err tenants_insert(struct db *db, struct tenant *t)
{
    static const char SQL[] =
        "INSERT INTO tenants (id, name, max_concurrent_runs, max_queued_runs, at_limit,"
        " idempotency_retention_ms, weight, gate, rate_limit, active_runs, queued_runs,"
        " created_at, updated_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING num";
    assert(t->num == 0);
    struct db_rows *rows =
        DB_QUERY(db, SQL, DB_T(t->id), DB_T(t->name), DB_I_OR_NULL(t->max_concurrent_runs),
                 DB_I_OR_NULL(t->max_queued_runs), DB_T(str_of(at_limit_name(t->at_limit))),
                 DB_I_OR_NULL(t->idempotency_retention_ms), DB_I(t->weight), DB_T(t->gate),
                 DB_T(t->rate_limit), DB_I(t->active_runs), DB_I(t->queued_runs),
                 DB_I(t->created_at), DB_I(t->updated_at));
    int64_t num = 0;
    if (db_next(rows))
        num = db_int(rows, 0);
    while (db_next(rows)) {
    }
    enum err e = db_rows_end(rows);
    if (e == ERR_OK)
        t->num = num;
    return e;
}

enum err tenants_update_settings(struct db *db, const struct tenant *t)
{
    static const char SQL[] =
        "UPDATE tenants SET name = $2, max_concurrent_runs = $3, max_queued_runs = $4,"
        " at_limit = $5, idempotency_retention_ms = $6, weight = $7, gate = $8, rate_limit = $9,"
        " updated_at = $10 WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(t->num), DB_T(t->name), DB_I_OR_NULL(t->max_concurrent_runs),
                   DB_I_OR_NULL(t->max_queued_runs), DB_T(str_of(at_limit_name(t->at_limit))),
                   DB_I_OR_NULL(t->idempotency_retention_ms), DB_I(t->weight), DB_T(t->gate),
                   DB_T(t->rate_limit), DB_I(t->updated_at));
}

enum err tenants_update_counters(struct db *db, const struct tenant *t)
{
    static const char SQL[] =
        "UPDATE tenants SET active_runs = $2, queued_runs = $3 WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(t->num), DB_I(t->active_runs), DB_I(t->queued_runs));
}

enum err tenants_list(struct db *db, struct str after, int64_t limit, struct arena *arena,
                      void (*each)(void *ctx, const struct tenant *t), void *ctx)
{
    static const char SQL[] =
        "SELECT " COLUMNS " FROM tenants WHERE id > $1 AND id <> '*' ORDER BY id LIMIT $2";
    struct db_rows *rows =
        DB_QUERY(db, SQL, DB_T(after.ptr != NULL ? after : STR("")), DB_I(limit));
    bool full = false;
    while (!full && db_next(rows)) {
        struct tenant t;
        full = !read_row(rows, arena, &t);
        if (!full)
            each(ctx, &t);
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err tenants_recount(struct db *db,
                         void (*each)(void *ctx, struct str id, int64_t counted, int64_t found),
                         void *ctx, int64_t *ret_checked)
{
    /* The list of statuses is that of run_holds_slot(); a test compares the two. */
    static const char SQL[] =
        "SELECT t.id, t.active_runs, (SELECT count(*) FROM runs r WHERE r.tenant = t.num"
        " AND r.status IN ('pending', 'running', 'waiting', 'paused')) FROM tenants t";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    int64_t checked = 0;
    while (db_next(rows)) {
        checked++;
        if (db_int(rows, 1) != db_int(rows, 2))
            each(ctx, db_str(rows, 0), db_int(rows, 1), db_int(rows, 2));
    }
    *ret_checked = checked;
    return db_rows_end(rows);
}
