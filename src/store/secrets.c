/* Random keys as rows. */
#include "store/secrets.h"

enum err secrets_get(struct db *db, const struct env *env, struct str name, struct secret *ret)
{
    static const char SQL[] = "SELECT value FROM secrets WHERE name = $1";
    static const char SQL_NEW[] = "INSERT INTO secrets (name, value) VALUES ($1, $2)"
                                  " ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(name));
    bool found = db_next(rows);
    struct sha256 kept = {{0}};
    if (found)
        kept = db_hash(rows, 0);
    found = found && !db_skip_damaged(rows);
    enum err e = db_rows_end(rows);
    if (e == ERR_OK && !found) {
        env_random(env, kept.bytes, sizeof(kept.bytes));
        e = DB_EXEC(db, SQL_NEW, NULL, DB_T(name), DB_H(kept));
    }
    if (e == ERR_OK)
        memcpy(ret->bytes, kept.bytes, sizeof(ret->bytes));
    return e;
}
