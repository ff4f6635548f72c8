/* API keys as rows. */
#include "store/keys.h"

#define COLUMNS                                                                       \
    "k.id, k.tenant, k.prefix, k.hash, k.role, k.label, k.created_at, k.created_by, " \
    "k.last_used_at, k.revoked_at, t.id"
#define FROM " FROM api_keys k LEFT JOIN tenants t ON t.num = k.tenant "

enum err keys_insert(struct db *db, const struct api_key *key)
{
    static const char SQL[] =
        "INSERT INTO api_keys (id, tenant, prefix, hash, role, label, created_at, created_by)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    return DB_EXEC(db, SQL, NULL, DB_U(key->id), key->tenant == 0 ? DB_N() : DB_I(key->tenant),
                   DB_T(key->prefix), DB_H(key->hash), DB_T(str_of(role_name(key->role))),
                   DB_T(key->label), DB_I(key->created_at), DB_T(key->created_by));
}

static void read_row(struct db_rows *r, struct api_key *key)
{
    *key = (struct api_key){
        .id = db_uuid(r, 0),
        .tenant = db_int_or(r, 1, 0),
        .prefix = db_str(r, 2),
        .hash = db_hash(r, 3),
        .role = db_known(r, 4, role_of(db_str(r, 4)), ROLE_COUNT),
        .label = db_str(r, 5),
        .created_at = db_time(r, 6),
        .created_by = db_str(r, 7),
        .last_used_at = db_time_or(r, 8, -1),
        .revoked_at = db_time_or(r, 9, -1),
        .tenant_id = db_is_null(r, 1) ? STR("*") : db_str(r, 10),
    };
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
    static const char SQL[] = "SELECT " COLUMNS FROM "WHERE k.prefix = $1";
    return each_row(DB_QUERY(db, SQL, DB_T(prefix)), each, ctx);
}

enum err keys_list(struct db *db, int64_t tenant, struct uuid after, int64_t limit,
                   api_key_each *each, void *ctx)
{
    static const char SQL[] =
        "SELECT " COLUMNS FROM
        "WHERE k.id > $1 AND ($2 = 0 OR k.tenant = $2) ORDER BY k.id LIMIT $3";
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
    static const char SQL[] = "UPDATE api_keys SET last_used_at = $2 WHERE id = $1";
    return DB_EXEC(db, SQL, NULL, DB_U(id), DB_I(now_ms));
}
