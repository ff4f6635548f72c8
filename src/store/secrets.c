/* Random keys as rows. */
#include "store/secrets.h"

enum err secrets_get(struct db *db, const struct env *env, struct str name, struct secret *ret)
{
    static const char SQL[] = "SELECT value FROM secrets WHERE name = $1";
    static const char SQL_NEW[] = "INSERT INTO secrets (name, value) VALUES ($1, $2)"
                                  " ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(name));
    bool found = db_next(rows);
    struct sha256 stored = {{0}};
    if (found)
        stored = db_hash(rows, 0);
    found = found && !db_skip_damaged(rows);
    enum err e = db_rows_end(rows);
    if (e != ERR_OK)
        return e;
    if (!found) {
        env_random(env, stored.bytes, sizeof(stored.bytes));
        e = DB_EXEC(db, SQL_NEW, NULL, DB_T(name), DB_H(stored));
        if (e != ERR_OK)
            return e;
    }
    memcpy(ret->bytes, stored.bytes, sizeof(ret->bytes));
    return ERR_OK;
}
