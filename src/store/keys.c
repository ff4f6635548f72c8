/* API keys as rows. */
#include "store/keys.h"

#include "store/columns.h"

#define COLUMN_BIND_ROLE(value) COLUMN_BIND_WORD(role_name(value))
#define COLUMN_READ_ROLE(rows, at) COLUMN_READ_WORD(rows, at, role_of, ROLE_COUNT)

/* A key of all tenants has no tenant: null in the row, 0 in the struct. */
#define COLUMN_BIND_TENANT_OR_ALL(value) ((value) == 0 ? DB_N() : DB_I(value))
#define COLUMN_READ_TENANT_OR_ALL(rows, at) db_int_or(rows, at, 0)

#define KEY_COLUMNS(X, p)                  \
    X(p, 1, UUID, id, id)                  \
    X(p, 2, TENANT_OR_ALL, tenant, tenant) \
    X(p, 3, TEXT, prefix, prefix)          \
    X(p, 4, HASH, hash, hash)              \
    X(p, 5, ROLE, role, role)              \
    X(p, 6, TEXT, label, label)            \
    X(p, 7, TIME, created_at, created_at)  \
    X(p, 8, TEXT, created_by, created_by)
#define KEY_USE(X, p)                                 \
    X(p, 9, TIME_OR_NONE, last_used_at, last_used_at) \
    X(p, 10, TIME_OR_NONE, revoked_at, revoked_at)
#define ALL_COLUMNS(X, p) KEY_COLUMNS(X, p) KEY_USE(X, p)
COLUMNS_NUMBERED(ALL_COLUMNS, KEY);

#define SELECT_KEYS                   \
    COLUMNS_SELECT(ALL_COLUMNS, "k.") \
    ", t.id FROM api_keys k LEFT JOIN tenants t ON t.num = k.tenant"

enum err keys_insert(struct db *db, const struct api_key *key)
{
    static const char SQL[] = COLUMNS_INSERT("api_keys", KEY_COLUMNS);
    return DB_EXEC(db, SQL, NULL, KEY_COLUMNS(COLUMN_BIND, key));
}

static void read_row(struct db_rows *rows, struct api_key *key)
{
    *key = (struct api_key){ALL_COLUMNS(COLUMN_READ, rows)};
    key->tenant_id = db_is_null(rows, KEY_AT_tenant) ? STR("*") : db_str(rows, KEY_COLUMNS_END);
}

static enum err each_row(struct db_rows *rows, api_key_each *each, void *ctx)
{
    while (db_next(rows)) {
        struct api_key key;
        read_row(rows, &key);
        if (!db_skip_damaged(rows))
            each(ctx, &key);
    }
    return db_rows_end(rows);
}

enum err keys_find_prefix(struct db *db, struct str prefix, api_key_each *each, void *ctx)
{
    static const char SQL[] = SELECT_KEYS " WHERE k.prefix = $1";
    return each_row(DB_QUERY(db, SQL, DB_T(prefix)), each, ctx);
}

enum err keys_find_id(struct db *db, struct uuid id, api_key_each *each, void *ctx)
{
    static const char SQL[] = SELECT_KEYS " WHERE k.id = $1";
    return each_row(DB_QUERY(db, SQL, DB_U(id)), each, ctx);
}

enum err keys_list(struct db *db, int64_t tenant, struct uuid after, int64_t limit,
                   api_key_each *each, void *ctx)
{
    static const char SQL[] =
        SELECT_KEYS " WHERE k.id > $1 AND ($2 = 0 OR k.tenant = $2) ORDER BY k.id LIMIT $3";
    return each_row(DB_QUERY(db, SQL, DB_U(after), DB_I(tenant), DB_I(limit)), each, ctx);
}

enum err keys_revoke(struct db *db, int64_t tenant, struct uuid id, int64_t now_ms, bool *ret_found)
{
    static const char SQL[] = "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $3)"
                              " WHERE id = $1 AND ($2 = 0 OR tenant = $2)";
    int64_t changed = 0;
    enum err e = DB_EXEC(db, SQL, &changed, DB_U(id), DB_I(tenant), DB_I(now_ms));
    *ret_found = changed > 0;
    return e;
}

enum err keys_touch(struct db *db, struct uuid id, int64_t now_ms)
{
    static const char SQL[] = "UPDATE api_keys SET last_used_at = $2"
                              " WHERE id = $1 AND COALESCE(last_used_at, -1) < $2";
    return DB_EXEC(db, SQL, NULL, DB_U(id), DB_I(now_ms));
}
