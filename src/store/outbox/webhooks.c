/* Webhooks as rows. */
#include "store/outbox/webhooks.h"

#define COLUMNS                                                                         \
    "num, id, tenant, url, events, description, secret, old_secret, old_secret_until, " \
    "failing_since, disabled_at, disabled_reason, created_by, created_at, updated_at, feed_from"

static struct db_value secret_value(const struct webhook_secret *secret)
{
    return DB_B(secret->bytes, WEBHOOK_SECRET_LEN);
}

static void read_secret(struct db_rows *r, int column, struct webhook_secret *ret)
{
    static_assert((int)WEBHOOK_SECRET_LEN == (int)SHA256_LEN, "read as a hash is");
    struct sha256 bytes = db_hash(r, column);
    memcpy(ret->bytes, bytes.bytes, WEBHOOK_SECRET_LEN);
}

enum err webhooks_insert(struct db *db, const struct webhook *w)
{
    static const char SQL[] =
        "INSERT INTO webhooks (id, tenant, url, events, description, secret, created_by,"
        " created_at, updated_at, feed_from) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9)";
    return DB_EXEC(db, SQL, NULL, DB_U(w->id), DB_I(w->tenant), DB_T(w->url), DB_T(w->events),
                   DB_T(w->description), secret_value(&w->secret), DB_T(w->created_by),
                   DB_I(w->created_at), DB_I(w->feed_from));
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

static void read_row(struct db_rows *r, struct webhook *w)
{
    *w = (struct webhook){
        .num = db_count(r, 0),
        .id = db_uuid(r, 1),
        .tenant = db_int(r, 2),
        .url = db_str(r, 3),
        .events = db_str(r, 4),
        .description = db_str(r, 5),
        .old_secret_until = db_time_or(r, 8, -1),
        .failing_since = db_time_or(r, 9, -1),
        .disabled_at = db_time_or(r, 10, -1),
        .disabled_reason = db_str(r, 11),
        .created_by = db_str(r, 12),
        .created_at = db_time(r, 13),
        .updated_at = db_time(r, 14),
        .feed_from = db_int(r, 15),
    };
    read_secret(r, 6, &w->secret);
    if (w->old_secret_until >= 0)
        read_secret(r, 7, &w->old_secret);
}

static enum err read_one(struct db_rows *rows, struct arena *arena, bool *ret_found,
                         struct webhook *ret)
{
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        read_row(rows, ret);
        full = !(arena_keep(arena, &ret->url) && arena_keep(arena, &ret->events) &&
                 arena_keep(arena, &ret->description) && arena_keep(arena, &ret->disabled_reason) &&
                 arena_keep(arena, &ret->created_by));
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err webhooks_find(struct db *db, int64_t tenant, struct uuid id, struct arena *arena,
                       bool *ret_found, struct webhook *ret)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM webhooks"
                              " WHERE id = $1 AND tenant = $2 AND deleted_at IS NULL";
    return read_one(DB_QUERY(db, SQL, DB_U(id), DB_I(tenant)), arena, ret_found, ret);
}

enum err webhooks_find_num(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                           struct webhook *ret)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM webhooks"
                              " WHERE num = $1 AND deleted_at IS NULL";
    return read_one(DB_QUERY(db, SQL, DB_I(num)), arena, ret_found, ret);
}

enum err webhooks_list(struct db *db, int64_t tenant, int64_t after, int64_t limit,
                       webhook_each *each, void *ctx)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM webhooks"
                              " WHERE tenant = $1 AND num > $2 AND deleted_at IS NULL"
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
