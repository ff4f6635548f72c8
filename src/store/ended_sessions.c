/* Sessions that were signed out before their time, as rows. */
#include "store/ended_sessions.h"

enum err ended_sessions_add(struct db *db, struct uuid id, int64_t expires_at)
{
    static const char SQL[] = "INSERT INTO ended_sessions (id, expires_at) VALUES ($1, $2)"
                              " ON CONFLICT (id) DO NOTHING";
    return DB_EXEC(db, SQL, NULL, DB_U(id), DB_I(expires_at));
}

enum err ended_sessions_list(struct db *db, int64_t now_ms, int64_t limit,
                             void (*each)(void *ctx, struct uuid id, int64_t expires_at), void *ctx)
{
    static const char SQL[] = "SELECT id, expires_at FROM ended_sessions WHERE expires_at > $1"
                              " ORDER BY expires_at DESC LIMIT $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(now_ms), DB_I(limit));
    while (db_next(rows)) {
        struct uuid id = db_uuid(rows, 0);
        int64_t expires_at = db_time(rows, 1);
        if (!db_skip_damaged(rows))
            each(ctx, id, expires_at);
    }
    return db_rows_end(rows);
}

enum err ended_sessions_drop(struct db *db, int64_t now_ms, int64_t limit, int64_t *ret_removed)
{
    static const char SQL[] =
        "DELETE FROM ended_sessions WHERE id IN (SELECT id FROM ended_sessions"
        " WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)";
    return DB_EXEC(db, SQL, ret_removed, DB_I(now_ms), DB_I(limit));
}
