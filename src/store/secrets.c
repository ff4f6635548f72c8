/* Random keys as rows. */
#include "store/secrets.h"

enum err secrets_find(struct db *db, struct str name, bool *ret_found, struct secret *ret)
{
    static const char SQL[] = "SELECT value FROM secrets WHERE name = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(name));
    bool found = db_next(rows);
    struct sha256 stored = {{0}};
    if (found)
        stored = db_hash(rows, 0);
    *ret_found = found && !db_skip_damaged(rows);
    memcpy(ret->bytes, stored.bytes, sizeof(ret->bytes));
    return db_rows_end(rows);
}

enum err secrets_get(struct db *db, const struct env *env, struct str name, struct secret *ret)
{
    static const char SQL_NEW[] = "INSERT INTO secrets (name, value) VALUES ($1, $2)"
                                  " ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    bool found = false;
    enum err e = secrets_find(db, name, &found, ret);
    if (e != ERR_OK || found)
        return e;
    env_random(env, ret->bytes, sizeof(ret->bytes));
    return DB_EXEC(db, SQL_NEW, NULL, DB_T(name), DB_B(ret->bytes, sizeof(ret->bytes)));
}

enum err secrets_list(struct db *db, struct str prefix, struct secret *ret, size_t room,
                      size_t *ret_count)
{
    static const char SQL[] = "SELECT value FROM secrets WHERE substr(name, 1, length($1)) = $1"
                              " ORDER BY name LIMIT $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(prefix), DB_I((int64_t)room));
    size_t count = 0;
    while (db_next(rows)) {
        struct sha256 stored = db_hash(rows, 0);
        if (!db_skip_damaged(rows))
            memcpy(ret[count++].bytes, stored.bytes, SHA256_LEN);
    }
    *ret_count = count;
    return db_rows_end(rows);
}
