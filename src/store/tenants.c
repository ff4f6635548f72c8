/* Tenants as rows. */
#include "store/tenants.h"

#include "base/limits.h"
#include "store/columns.h"

#define COLUMN_BIND_AT_LIMIT(value) COLUMN_BIND_WORD(at_limit_name(value))
#define COLUMN_READ_AT_LIMIT(rows, at) COLUMN_READ_WORD(rows, at, at_limit_of, AT_LIMIT_COUNT)
#define COLUMN_KEEP_AT_LIMIT(arena, value)

#define TENANT_COLUMNS(X, p)                                                   \
    X(p, 1, TEXT, id, id)                                                      \
    X(p, 2, TEXT, name, name)                                                  \
    X(p, 3, COUNT_OR_NONE, max_concurrent_runs, max_concurrent_runs)           \
    X(p, 4, COUNT_OR_NONE, max_queued_runs, max_queued_runs)                   \
    X(p, 5, AT_LIMIT, at_limit, at_limit)                                      \
    X(p, 6, COUNT_OR_NONE, idempotency_retention_ms, idempotency_retention_ms) \
    X(p, 7, COUNT, weight, weight)                                             \
    X(p, 8, TIME, created_at, created_at)                                      \
    X(p, 9, TIME, updated_at, updated_at)                                      \
    X(p, 10, COUNT, settings_version, settings_version)                        \
    X(p, 11, COUNT_OR_NONE, run_retention_ms, run_retention_ms)
COLUMNS_NUMBERED(TENANT_COLUMNS, TENANT);

/* Two settings are stored as JSON, the number is given by the table, and the counters come from the
 * row or from the log. */
enum {
    AT_ID,
    AT_GATE = TENANT_COLUMNS_END,
    AT_RATE_LIMIT,
    AT_NUM,
    AT_ACTIVE,
    AT_QUEUED,
    AT_RATE_FULL,
};
#define SELECT_WITH(counters)                                                            \
    COLUMNS_SELECT(TENANT_COLUMNS, "t.")                                                 \
    ", t.gate, t.rate_limit, t.num, " counters ".active_runs, " counters ".queued_runs," \
    " " counters ".rate_full_at"
#define SELECT_ROWS SELECT_WITH("t") " FROM tenants t"
#define SELECT_NOW SELECT_WITH("c") " FROM tenants t JOIN tenant_counters c ON c.tenant = t.num"
#define INSERT_TENANT                                                                    \
    COLUMNS_INSERT_WITH("tenants", TENANT_COLUMNS,                                       \
                        "gate, rate_limit, active_runs, queued_runs, rate_full_at, num", \
                        "$12, $13, $14, $15, $16, " COLUMNS_NEXT_NUM("tenants", "$17", "$18"))

#define SETTINGS_COLUMNS(X, p)     \
    X(p, 1, INT, tenant, tenant)   \
    X(p, 2, INT, version, version) \
    X(p, 3, TEXT, settings, json)  \
    X(p, 4, TIME, at, at)          \
    X(p, 5, TEXT, actor, actor)
COLUMNS_NUMBERED(SETTINGS_COLUMNS, SETTINGS);

#define SELECT_SETTINGS COLUMNS_SELECT(SETTINGS_COLUMNS, "") " FROM tenant_settings"
#define INSERT_SETTINGS COLUMNS_INSERT("tenant_settings", SETTINGS_COLUMNS)

static void read_row(struct db_rows *rows, struct tenant *t)
{
    *t = (struct tenant){TENANT_COLUMNS(COLUMN_READ, rows)};
    t->num = db_count(rows, AT_NUM);
    t->active_runs = db_count(rows, AT_ACTIVE);
    t->queued_runs = db_count(rows, AT_QUEUED);
    t->rate_full_at_ns = db_int(rows, AT_RATE_FULL);
    if (!tenant_id_ok(t->id) && !str_is(t->id, "*")) /* keys of workers for all tenants */
        db_damaged(rows, AT_ID);
    db_understood(rows, AT_GATE, gate_policy_parse(db_str(rows, AT_GATE), &t->gate));
    db_understood(rows, AT_RATE_LIMIT,
                  rate_limit_parse(db_str(rows, AT_RATE_LIMIT), &t->rate_limit));
}

COLUMNS_READ_ONE(read_one, struct tenant, TENANT_COLUMNS, read_row);

enum err tenants_find(struct db *db, struct str id, struct arena *arena, bool *ret_found,
                      struct tenant *ret)
{
    static const char SQL[] = SELECT_ROWS " WHERE t.id = $1";
    return read_one(DB_QUERY(db, SQL, DB_T(id)), arena, ret_found, ret);
}

enum err tenants_num(struct db *db, struct str id, int64_t *ret)
{
    static const char SQL[] = "SELECT num FROM tenants WHERE id = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(id));
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err tenants_find_num(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                          struct tenant *ret)
{
    static const char SQL[] = SELECT_ROWS " WHERE t.num = $1";
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
    static const char SQL[] = INSERT_TENANT " RETURNING num";
    assert(t->num == 0);
    struct kept_text kept;
    kept_text_of(&kept, t);
    if (!buf_ok(&kept.gate) || !buf_ok(&kept.rate)) {
        kept_text_release(&kept);
        return ERR_NO_MEMORY;
    }
    struct db_rows *rows = DB_QUERY(
        db, SQL, TENANT_COLUMNS(COLUMN_BIND, t) DB_T(buf_str(&kept.gate)), rate_value(&kept),
        DB_I(t->active_runs), DB_I(t->queued_runs), DB_I(t->rate_full_at_ns), COLUMNS_NUMBERS(db));
    int64_t num = 0;
    if (db_next(rows))
        num = db_int(rows, 0);
    while (db_next(rows)) {
    }
    enum err e = db_rows_end(rows);
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

/* --- the log of counters --- */

enum err counters_folded(struct db *db, int64_t through)
{
    static const char SQL[] = "INSERT INTO indexed (name, through) VALUES ('counters', $1)"
                              " ON CONFLICT (name) DO UPDATE SET through = excluded.through"
                              " WHERE indexed.through <> excluded.through";
    return DB_EXEC(db, SQL, NULL, DB_I(through));
}

enum err counters_folded_through(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT through FROM indexed WHERE name = 'counters'";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret = db_next(rows) ? db_int(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err counter_log_size(struct db *db, int64_t *ret_packs, int64_t *ret_rows)
{
    static const char SQL[] = "SELECT count(*), count(counters) FROM feed_packs WHERE num >"
                              " COALESCE((SELECT through FROM indexed WHERE name = 'counters'), 0)";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    if (db_next(rows)) {
        *ret_packs = db_int(rows, 0);
        *ret_rows = db_int(rows, 1);
    }
    return db_rows_end(rows);
}

enum err tenants_read_counters(struct db *db, struct tenant *t)
{
    static const char SQL[] = "SELECT active_runs, queued_runs, rate_full_at FROM tenant_counters"
                              " WHERE tenant = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(t->num));
    if (db_next(rows)) {
        t->active_runs = db_count(rows, 0);
        t->queued_runs = db_count(rows, 1);
        t->rate_full_at_ns = db_int(rows, 2);
    }
    return db_rows_end(rows);
}

/* --- earlier settings --- */

enum err settings_keep(struct db *db, const struct settings *s)
{
    static const char SQL[] = INSERT_SETTINGS " ON CONFLICT (tenant, version) DO NOTHING";
    static const char SQL_PRUNE[] =
        "DELETE FROM tenant_settings WHERE tenant = $1 AND version <= $2";
    enum err e = DB_EXEC(db, SQL, NULL, SETTINGS_COLUMNS(COLUMN_BIND, s));
    if (e != ERR_OK)
        return e;
    return DB_EXEC(db, SQL_PRUNE, NULL, DB_I(s->tenant), DB_I(s->version - SETTINGS_KEPT_MAX));
}

static void read_settings(struct db_rows *rows, struct settings *s)
{
    *s = (struct settings){SETTINGS_COLUMNS(COLUMN_READ, rows)};
}

COLUMNS_READ_ONE(read_one_settings, struct settings, SETTINGS_COLUMNS, read_settings);

enum err settings_find(struct db *db, int64_t tenant, int64_t version, struct arena *arena,
                       bool *ret_found, struct settings *ret)
{
    static const char SQL[] = SELECT_SETTINGS " WHERE tenant = $1 AND version = $2";
    return read_one_settings(DB_QUERY(db, SQL, DB_I(tenant), DB_I(version)), arena, ret_found, ret);
}

enum err settings_list(struct db *db, int64_t tenant, int64_t before, int64_t limit,
                       void (*each)(void *ctx, const struct settings *s), void *ctx)
{
    static const char SQL[] = SELECT_SETTINGS " WHERE tenant = $1"
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
        read_row(rows, &t);
        full = !(TENANT_COLUMNS(COLUMN_KEEP, &t) true);
        if (!full && !db_skip_damaged(rows))
            each(ctx, &t);
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err tenants_list(struct db *db, struct str after, int64_t limit, struct arena *arena,
                      void (*each)(void *ctx, const struct tenant *t), void *ctx)
{
    static const char SQL[] = SELECT_NOW " WHERE t.id > $1 AND t.id <> '*' ORDER BY t.id LIMIT $2";
    return walk(DB_QUERY(db, SQL, DB_T(after.ptr != NULL ? after : STR("")), DB_I(limit)), arena,
                each, ctx);
}

enum err tenants_in_use(struct db *db, struct arena *arena,
                        void (*each)(void *ctx, const struct tenant *t), void *ctx)
{
    static const char SQL[] = SELECT_NOW
        " WHERE c.active_runs > 0 OR c.queued_runs > 0 OR t.max_concurrent_runs IS NOT NULL"
        " ORDER BY c.active_runs + c.queued_runs DESC, t.num";
    return walk(db_query_values(db, SQL, NULL, 0), arena, each, ctx);
}

enum err tenants_logged(struct db *db, struct arena *arena,
                        void (*each)(void *ctx, const struct tenant *t), void *ctx)
{
    static const char SQL[] =
        SELECT_WITH("c") " FROM logged_counters c JOIN tenants t ON t.num = c.tenant";
    return walk(db_query_values(db, SQL, NULL, 0), arena, each, ctx);
}
