/* Tenants as rows. */
#include "store/tenants.h"

#include "base/limits.h"

#define COLUMNS                                                                                 \
    "num, id, name, max_concurrent_runs, max_queued_runs, at_limit, idempotency_retention_ms, " \
    "weight, gate, rate_limit, active_runs, queued_runs, created_at, updated_at, "              \
    "settings_version, rate_full_at, run_retention_ms"

/* False when the arena is full. */
static bool read_row(struct db_rows *r, struct arena *arena, struct tenant *t)
{
    *t = (struct tenant){
        .num = db_count(r, 0),
        .id = db_str(r, 1),
        .name = db_str(r, 2),
        .max_concurrent_runs = db_count_or(r, 3, -1),
        .max_queued_runs = db_count_or(r, 4, -1),
        .at_limit = db_known(r, 5, at_limit_of(db_str(r, 5)), AT_LIMIT_COUNT),
        .idempotency_retention_ms = db_count_or(r, 6, -1),
        .weight = db_count(r, 7),
        .active_runs = db_count(r, 10),
        .queued_runs = db_count(r, 11),
        .created_at = db_time(r, 12),
        .updated_at = db_time(r, 13),
        .settings_version = db_count(r, 14),
        .rate_full_at_ns = db_int(r, 15),
        .run_retention_ms = db_count_or(r, 16, -1),
    };
    bool known =
        gate_policy_parse(db_str(r, 8), &t->gate) && rate_limit_parse(db_str(r, 9), &t->rate_limit);
    if (!known)
        db_damaged(r, 8);
    return arena_keep(arena, &t->id) && arena_keep(arena, &t->name);
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

/* Two of the settings are kept as JSON. */
struct kept_text {
    struct buf gate;
    struct buf rate;
};

static void kept_text_of(struct kept_text *k, const struct tenant *t)
{
    buf_init(&k->gate, TEXT_MAX);
    buf_init(&k->rate, TEXT_MAX);
    struct json_out gate = json_out_to(&k->gate);
    gate_policy_put(&gate, NULL, &t->gate);
    struct json_out rate = json_out_to(&k->rate);
    if (t->rate_limit.per_second > 0)
        rate_limit_put(&rate, NULL, &t->rate_limit);
}

static void kept_text_release(struct kept_text *k)
{
    buf_release(&k->gate);
    buf_release(&k->rate);
}

static struct db_value rate_value(const struct kept_text *k)
{
    return k->rate.len > 0 ? DB_T(buf_str(&k->rate)) : DB_N();
}

enum err tenants_insert(struct db *db, struct tenant *t)
{
    static const char SQL[] =
        "INSERT INTO tenants (id, name, max_concurrent_runs, max_queued_runs, at_limit,"
        " idempotency_retention_ms, weight, gate, rate_limit, active_runs, queued_runs,"
        " created_at, updated_at, settings_version, rate_full_at, run_retention_ms)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
        " RETURNING num";
    assert(t->num == 0);
    struct kept_text kept;
    kept_text_of(&kept, t);
    struct db_rows *rows = DB_QUERY(
        db, SQL, DB_T(t->id), DB_T(t->name), DB_I_OR_NULL(t->max_concurrent_runs),
        DB_I_OR_NULL(t->max_queued_runs), DB_T(str_of(at_limit_name(t->at_limit))),
        DB_I_OR_NULL(t->idempotency_retention_ms), DB_I(t->weight), DB_T(buf_str(&kept.gate)),
        rate_value(&kept), DB_I(t->active_runs), DB_I(t->queued_runs), DB_I(t->created_at),
        DB_I(t->updated_at), DB_I(t->settings_version), DB_I(t->rate_full_at_ns),
        DB_I_OR_NULL(t->run_retention_ms));
    int64_t num = 0;
    if (db_next(rows))
        num = db_int(rows, 0);
    while (db_next(rows)) {
    }
    enum err e = db_rows_end(rows);
    if (!buf_ok(&kept.gate) || !buf_ok(&kept.rate))
        e = ERR_NO_MEMORY;
    kept_text_release(&kept);
    if (e == ERR_OK)
        t->num = num;
    return e;
}

enum err tenants_update_settings(struct db *db, const struct tenant *t)
{
    static const char SQL[] =
        "UPDATE tenants SET name = $2, max_concurrent_runs = $3, max_queued_runs = $4,"
        " at_limit = $5, idempotency_retention_ms = $6, weight = $7, gate = $8, rate_limit = $9,"
        " updated_at = $10, settings_version = $11, run_retention_ms = $12 WHERE num = $1";
    struct kept_text kept;
    kept_text_of(&kept, t);
    enum err e = ERR_NO_MEMORY;
    if (buf_ok(&kept.gate) && buf_ok(&kept.rate))
        e = DB_EXEC(db, SQL, NULL, DB_I(t->num), DB_T(t->name),
                    DB_I_OR_NULL(t->max_concurrent_runs), DB_I_OR_NULL(t->max_queued_runs),
                    DB_T(str_of(at_limit_name(t->at_limit))),
                    DB_I_OR_NULL(t->idempotency_retention_ms), DB_I(t->weight),
                    DB_T(buf_str(&kept.gate)), rate_value(&kept), DB_I(t->updated_at),
                    DB_I(t->settings_version), DB_I_OR_NULL(t->run_retention_ms));
    kept_text_release(&kept);
    return e;
}

enum err tenants_update_counters(struct db *db, const struct tenant *t)
{
    static const char SQL[] = "UPDATE tenants SET active_runs = $2, queued_runs = $3,"
                              " rate_full_at = $4 WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(t->num), DB_I(t->active_runs), DB_I(t->queued_runs),
                   DB_I(t->rate_full_at_ns));
}

/* --- earlier settings --- */

enum err settings_keep(struct db *db, const struct settings *s)
{
    static const char SQL[] =
        "INSERT INTO tenant_settings (tenant, version, settings, at, actor)"
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant, version) DO NOTHING";
    static const char SQL_PRUNE[] =
        "DELETE FROM tenant_settings WHERE tenant = $1 AND version <= $2";
    enum err e = DB_EXEC(db, SQL, NULL, DB_I(s->tenant), DB_I(s->version), DB_T(s->json),
                         DB_I(s->at), DB_T(s->actor));
    if (e == ERR_OK)
        e = DB_EXEC(db, SQL_PRUNE, NULL, DB_I(s->tenant), DB_I(s->version - SETTINGS_KEPT_MAX));
    return e;
}

static void read_settings(struct db_rows *rows, struct settings *s)
{
    *s = (struct settings){db_int(rows, 0), db_int(rows, 1), db_str(rows, 2), db_time(rows, 3),
                           db_str(rows, 4)};
}

#define SETTINGS_COLUMNS "tenant, version, settings, at, actor"

enum err settings_find(struct db *db, int64_t tenant, int64_t version, struct arena *arena,
                       bool *ret_found, struct settings *ret)
{
    static const char SQL[] =
        "SELECT " SETTINGS_COLUMNS " FROM tenant_settings WHERE tenant = $1 AND version = $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(tenant), DB_I(version));
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        read_settings(rows, ret);
        full = !(arena_keep(arena, &ret->json) && arena_keep(arena, &ret->actor));
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err settings_list(struct db *db, int64_t tenant, int64_t before, int64_t limit,
                       void (*each)(void *ctx, const struct settings *s), void *ctx)
{
    static const char SQL[] = "SELECT " SETTINGS_COLUMNS " FROM tenant_settings WHERE tenant = $1"
                              " AND version < $2 ORDER BY version DESC LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(tenant), DB_I(before), DB_I(limit));
    while (db_next(rows)) {
        struct settings s;
        read_settings(rows, &s);
        if (!db_skip_damaged(rows))
            each(ctx, &s);
    }
    return db_rows_end(rows);
}

static enum err walk(struct db_rows *rows, struct arena *arena,
                     void (*each)(void *ctx, const struct tenant *t), void *ctx)
{
    bool full = false;
    while (!full && db_next(rows)) {
        struct tenant t;
        full = !read_row(rows, arena, &t);
        if (!full && !db_skip_damaged(rows))
            each(ctx, &t);
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err tenants_list(struct db *db, struct str after, int64_t limit, struct arena *arena,
                      void (*each)(void *ctx, const struct tenant *t), void *ctx)
{
    static const char SQL[] =
        "SELECT " COLUMNS " FROM tenants WHERE id > $1 AND id <> '*' ORDER BY id LIMIT $2";
    return walk(DB_QUERY(db, SQL, DB_T(after.ptr != NULL ? after : STR("")), DB_I(limit)), arena,
                each, ctx);
}

enum err tenants_in_use(struct db *db, struct arena *arena,
                        void (*each)(void *ctx, const struct tenant *t), void *ctx)
{
    static const char SQL[] =
        "SELECT " COLUMNS " FROM tenants WHERE active_runs > 0 OR queued_runs > 0"
        " OR max_concurrent_runs IS NOT NULL ORDER BY active_runs + queued_runs DESC, num";
    return walk(db_query_values(db, SQL, NULL, 0), arena, each, ctx);
}
