/* Webhooks as rows. */
#include "store/outbox/webhooks.h"

#include "store/columns.h"

static struct db_value secret_value(const struct webhook_secret *secret)
{
    return DB_B(secret->bytes, WEBHOOK_SECRET_LEN);
}

static struct webhook_secret read_secret(struct db_rows *rows, int column)
{
    static_assert((int)WEBHOOK_SECRET_LEN == (int)SHA256_LEN, "read as a hash is");
    struct sha256 bytes = db_hash(rows, column);
    struct webhook_secret secret;
    memcpy(secret.bytes, bytes.bytes, WEBHOOK_SECRET_LEN);
    return secret;
}

#define COLUMN_BIND_SECRET(value) secret_value(&(value))
#define COLUMN_READ_SECRET(rows, at) read_secret(rows, at)
#define COLUMN_KEEP_SECRET(arena, value)

#define WEBHOOK_COLUMNS(X, p)               \
    X(p, 1, UUID, id, id)                   \
    X(p, 2, INT, tenant, tenant)            \
    X(p, 3, TEXT, url, url)                 \
    X(p, 4, TEXT, events, events)           \
    X(p, 5, TEXT, description, description) \
    X(p, 6, SECRET, secret, secret)         \
    X(p, 7, TEXT, created_by, created_by)   \
    X(p, 8, TIME, created_at, created_at)   \
    X(p, 9, TIME, updated_at, updated_at)   \
    X(p, 10, INT, feed_from, feed_from)
#define WEBHOOK_STATE(X, p)                                    \
    X(p, 11, COUNT, num, num)                                  \
    X(p, 12, TIME_OR_NONE, old_secret_until, old_secret_until) \
    X(p, 13, TIME_OR_NONE, failing_since, failing_since)       \
    X(p, 14, TIME_OR_NONE, disabled_at, disabled_at)           \
    X(p, 15, TEXT, disabled_reason, disabled_reason)
#define ALL_COLUMNS(X, p) WEBHOOK_COLUMNS(X, p) WEBHOOK_STATE(X, p)
COLUMNS_NUMBERED(ALL_COLUMNS, WEBHOOK);

#define SELECT_WEBHOOKS COLUMNS_SELECT(ALL_COLUMNS, "") ", old_secret FROM webhooks"

enum err webhooks_insert(struct db *db, const struct webhook *w)
{
    static const char SQL[] = COLUMNS_INSERT_WITH("webhooks", WEBHOOK_COLUMNS, "num",
                                                  COLUMNS_NEXT_NUM("webhooks", "$11", "$12"));
    return DB_EXEC(db, SQL, NULL, WEBHOOK_COLUMNS(COLUMN_BIND, w) COLUMNS_NUMBERS(db));
}

enum err webhooks_update(struct db *db, const struct webhook *w)
{
    static const char SQL[] =
        "UPDATE webhooks SET url = $2, events = $3, description = $4, secret = $5,"
        " old_secret = $6, old_secret_until = $7, failing_since = $8, disabled_at = $9,"
        " disabled_reason = $10, updated_at = $11, feed_from = $12 WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(w->num), DB_T(w->url), DB_T(w->events), DB_T(w->description),
                   secret_value(&w->secret),
                   w->old_secret_until < 0 ? DB_N() : secret_value(&w->old_secret),
                   DB_I_OR_NULL(w->old_secret_until), DB_I_OR_NULL(w->failing_since),
                   DB_I_OR_NULL(w->disabled_at), DB_T(w->disabled_reason), DB_I(w->updated_at),
                   DB_I(w->feed_from));
}

enum err webhooks_set_failing(struct db *db, int64_t num, int64_t since)
{
    static const char SQL[] = "UPDATE webhooks SET failing_since = $2 WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(num), DB_I_OR_NULL(since));
}

enum err webhooks_delete(struct db *db, int64_t num, int64_t now_ms)
{
    /* Its secrets go at once. */
    static const char SQL[] =
        "UPDATE webhooks SET deleted_at = $2, secret = $3,"
        " old_secret = NULL, old_secret_until = NULL, disabled_at = COALESCE(disabled_at, $2)"
        " WHERE num = $1";
    static const struct webhook_secret NONE = {{0}};
    return DB_EXEC(db, SQL, NULL, DB_I(num), DB_I(now_ms), secret_value(&NONE));
}

enum err webhooks_count(struct db *db, int64_t tenant, int64_t *ret)
{
    static const char SQL[] = "SELECT count(*) FROM webhooks"
                              " WHERE ($1 = 0 OR tenant = $1) AND deleted_at IS NULL";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(tenant));
    *ret = db_next(rows) ? db_int(rows, 0) : 0;
    return db_rows_end(rows);
}

/* --- reading --- */

static void read_row(struct db_rows *rows, struct webhook *w)
{
    *w = (struct webhook){ALL_COLUMNS(COLUMN_READ, rows)};
    if (w->old_secret_until >= 0)
        w->old_secret = read_secret(rows, WEBHOOK_COLUMNS_END);
}

COLUMNS_READ_ONE(read_one, struct webhook, ALL_COLUMNS, read_row);

enum err webhooks_find(struct db *db, int64_t tenant, struct uuid id, struct arena *arena,
                       bool *ret_found, struct webhook *ret)
{
    static const char SQL[] =
        SELECT_WEBHOOKS " WHERE id = $1 AND tenant = $2 AND deleted_at IS NULL";
    return read_one(DB_QUERY(db, SQL, DB_U(id), DB_I(tenant)), arena, ret_found, ret);
}

enum err webhooks_find_num(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                           struct webhook *ret)
{
    static const char SQL[] = SELECT_WEBHOOKS " WHERE num = $1 AND deleted_at IS NULL";
    return read_one(DB_QUERY(db, SQL, DB_I(num)), arena, ret_found, ret);
}

enum err webhooks_list(struct db *db, int64_t tenant, int64_t after, int64_t limit,
                       webhook_each *each, void *ctx)
{
    static const char SQL[] =
        SELECT_WEBHOOKS " WHERE tenant = $1 AND num > $2 AND deleted_at IS NULL"
                        " ORDER BY num LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(tenant), DB_I(after), DB_I(limit));
    while (db_next(rows)) {
        struct webhook w;
        read_row(rows, &w);
        if (!db_skip_damaged(rows))
            each(ctx, &w);
    }
    return db_rows_end(rows);
}

enum err webhooks_by_state(struct db *db, void (*each)(void *ctx, struct str state, int64_t number),
                           void *ctx)
{
    static const char SQL[] =
        "SELECT CASE WHEN disabled_at IS NOT NULL THEN 'disabled'"
        " WHEN failing_since IS NOT NULL THEN 'failing' ELSE 'enabled' END AS state, count(*)"
        " FROM webhooks WHERE deleted_at IS NULL GROUP BY 1";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    while (db_next(rows))
        each(ctx, db_str(rows, 0), db_int(rows, 1));
    return db_rows_end(rows);
}

/* --- sending and sweeping --- */

enum err webhooks_next_due(struct db *db, int64_t after, int64_t through, int64_t now_ms,
                           bool *ret_found, struct webhook_due *ret)
{
    static const char SQL[] =
        "SELECT w.num, w.failing_since FROM webhooks w"
        " WHERE w.num > $1 AND w.num <= $2 AND w.disabled_at IS NULL AND EXISTS"
        " (SELECT 1 FROM deliveries d WHERE d.webhook = w.num AND d.next_at IS NOT NULL"
        " AND d.next_at <= $3) ORDER BY w.num LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(after), DB_I(through), DB_I(now_ms));
    *ret_found = db_next(rows);
    if (*ret_found)
        *ret = (struct webhook_due){db_int(rows, 0), !db_is_null(rows, 1)};
    return db_rows_end(rows);
}

enum err webhooks_next(struct db *db, int64_t after, bool *ret_found, int64_t *ret_num,
                       bool *ret_deleted)
{
    static const char SQL[] = "SELECT num, deleted_at FROM webhooks WHERE num > $1"
                              " ORDER BY num LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(after));
    *ret_found = db_next(rows);
    if (*ret_found) {
        *ret_num = db_int(rows, 0);
        *ret_deleted = !db_is_null(rows, 1);
    }
    return db_rows_end(rows);
}

enum err webhooks_remove(struct db *db, int64_t num)
{
    static const char SQL[] = "DELETE FROM webhooks WHERE num = $1 AND deleted_at IS NOT NULL";
    return DB_EXEC(db, SQL, NULL, DB_I(num));
}
