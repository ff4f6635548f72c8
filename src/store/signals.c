/* Signals to runs as rows. */
#include "store/signals.h"

#define COLUMNS "run, seq, name, payload, dedup_key, at"

enum err signals_insert(struct db *db, struct run_signal *s)
{
    static const char SQL[] =
        "INSERT INTO run_signals (run, seq, name, payload, dedup_key, at)"
        " SELECT $1, COALESCE(MAX(seq), 0) + 1, $2, $3, $4, $5 FROM run_signals WHERE run = $1"
        " RETURNING seq";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(s->run), DB_T(s->name), DB_T(s->payload),
                                    DB_T(s->dedup_key), DB_I(s->at));
    while (db_next(rows))
        s->seq = db_int(rows, 0);
    return db_rows_end(rows);
}

static enum err read_one(struct db_rows *rows, struct arena *arena, bool *ret_found,
                         struct run_signal *ret)
{
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        *ret = (struct run_signal){db_int(rows, 0), db_int(rows, 1), db_str(rows, 2),
                                   db_str(rows, 3), db_str(rows, 4), db_int(rows, 5)};
        full = !(arena_keep(arena, &ret->name) && arena_keep(arena, &ret->payload) &&
                 arena_keep(arena, &ret->dedup_key));
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err signals_find_key(struct db *db, int64_t run, struct str dedup_key, struct arena *arena,
                          bool *ret_found, struct run_signal *ret)
{
    static const char SQL[] =
        "SELECT " COLUMNS " FROM run_signals WHERE run = $1 AND dedup_key = $2 LIMIT 1";
    return read_one(DB_QUERY(db, SQL, DB_I(run), DB_T(dedup_key)), arena, ret_found, ret);
}

enum err signals_waiting(struct db *db, int64_t run, struct str name, struct arena *arena,
                         bool *ret_found, struct run_signal *ret)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM run_signals WHERE run = $1 AND name = $2"
                              " AND taken_by IS NULL ORDER BY seq LIMIT 1";
    return read_one(DB_QUERY(db, SQL, DB_I(run), DB_T(name)), arena, ret_found, ret);
}

enum err signals_take(struct db *db, int64_t run, int64_t seq, int64_t ordinal)
{
    static const char SQL[] =
        "UPDATE run_signals SET taken_by = $3 WHERE run = $1 AND seq = $2 AND taken_by IS NULL";
    int64_t changed = 0;
    enum err e = DB_EXEC(db, SQL, &changed, DB_I(run), DB_I(seq), DB_I(ordinal));
    return e == ERR_OK && changed != 1 ? ERR_INTERNAL : e;
}
