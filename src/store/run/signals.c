/* Signals to runs as rows. */
#include "store/run/signals.h"

#define COLUMNS "run, seq, name, payload, at"

enum err signals_last(struct db *db, int64_t run, int64_t *ret)
{
    static const char SQL[] = "SELECT COALESCE(MAX(seq), 0) FROM run_signals WHERE run = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run));
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err signals_insert(struct db *db, const struct run_signal *s)
{
    static const char SQL[] =
        "INSERT INTO run_signals (run, seq, name, payload, at) VALUES ($1, $2, $3, $4, $5)";
    assert(s->seq > 0);
    return DB_EXEC(db, SQL, NULL, DB_I(s->run), DB_I(s->seq), DB_T(s->name), DB_T(s->payload),
                   DB_I(s->at));
}

static struct run_signal read_row(struct db_rows *rows)
{
    return (struct run_signal){.run = db_int(rows, 0),
                               .seq = db_count(rows, 1),
                               .name = db_str(rows, 2),
                               .payload = db_str(rows, 3),
                               .at = db_time(rows, 4)};
}

enum err signals_waiting(struct db *db, int64_t run, struct str name, struct arena *arena,
                         bool *ret_found, struct run_signal *ret)
{
    /* The number first: asked for the row at once, SQLite passes over all that were taken. */
    static const char SQL[] = "SELECT " COLUMNS " FROM run_signals WHERE run = $1 AND seq ="
                              " (SELECT MIN(seq) FROM run_signals"
                              " WHERE run = $1 AND taken_by IS NULL AND name = $2)";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_T(name));
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        *ret = read_row(rows);
        full = !(arena_keep(arena, &ret->name) && arena_keep(arena, &ret->payload));
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err signals_count_waiting(struct db *db, int64_t run, int64_t limit, int64_t *ret)
{
    static const char SQL[] = "SELECT count(*) FROM (SELECT 1 FROM run_signals"
                              " WHERE run = $1 AND taken_by IS NULL LIMIT $2) AS waiting";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_I(limit));
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err signals_take(struct db *db, int64_t run, int64_t seq, int64_t ordinal)
{
    static const char SQL[] =
        "UPDATE run_signals SET taken_by = $3 WHERE run = $1 AND seq = $2 AND taken_by IS NULL";
    int64_t changed = 0;
    enum err e = DB_EXEC(db, SQL, &changed, DB_I(run), DB_I(seq), DB_I(ordinal));
    return e == ERR_OK && changed != 1 ? ERR_DAMAGED : e;
}

enum err signals_taken(struct db *db, int64_t run, int64_t ordinal, signal_each *each, void *ctx)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM run_signals WHERE run = $1 AND seq IN"
                              " (SELECT seq FROM run_signals WHERE run = $1 AND taken_by = $2)"
                              " ORDER BY name, seq";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_I(ordinal));
    bool more = true;
    while (more && db_next(rows)) {
        struct run_signal s = read_row(rows);
        more = each(ctx, &s);
    }
    return db_rows_end(rows);
}

enum err signals_give_back(struct db *db, int64_t run, int64_t first, int64_t below)
{
    static const char SQL[] = "UPDATE run_signals SET taken_by = NULL"
                              " WHERE run = $1 AND taken_by >= $2 AND taken_by < $3";
    return DB_EXEC(db, SQL, NULL, DB_I(run), DB_I(first), DB_I(below));
}
