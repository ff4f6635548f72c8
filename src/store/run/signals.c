/* Signals to runs as rows. */
#include "store/run/signals.h"

#include "store/columns.h"

#define SIGNAL_COLUMNS(X, p)        \
    X(p, 1, INT, run, run)          \
    X(p, 2, COUNT, seq, seq)        \
    X(p, 3, TEXT, name, name)       \
    X(p, 4, TEXT, payload, payload) \
    X(p, 5, TIME, at, at)
COLUMNS_NUMBERED(SIGNAL_COLUMNS, SIGNAL);

#define SELECT_SIGNALS COLUMNS_SELECT(SIGNAL_COLUMNS, "") " FROM run_signals"

enum err signals_last(struct db *db, int64_t run, int64_t *ret)
{
    static const char SQL[] = "SELECT COALESCE(MAX(seq), 0) FROM run_signals WHERE run = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run));
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err signals_insert(struct db *db, const struct run_signal *s)
{
    static const char SQL[] = COLUMNS_INSERT("run_signals", SIGNAL_COLUMNS);
    assert(s->seq > 0);
    return DB_EXEC(db, SQL, NULL, SIGNAL_COLUMNS(COLUMN_BIND, s));
}

static void read_row(struct db_rows *rows, struct run_signal *s)
{
    *s = (struct run_signal){SIGNAL_COLUMNS(COLUMN_READ, rows)};
}

COLUMNS_READ_ONE(read_one, struct run_signal, SIGNAL_COLUMNS, read_row);

enum err signals_waiting(struct db *db, int64_t run, struct str name, struct arena *arena,
                         bool *ret_found, struct run_signal *ret)
{
    /* The number first: asked for the row at once, SQLite passes over all that were taken. */
    static const char SQL[] = SELECT_SIGNALS " WHERE run = $1 AND seq ="
                                             " (SELECT MIN(seq) FROM run_signals"
                                             " WHERE run = $1 AND taken_by IS NULL AND name = $2)";
    return read_one(DB_QUERY(db, SQL, DB_I(run), DB_T(name)), arena, ret_found, ret);
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
    static const char SQL[] =
        SELECT_SIGNALS " WHERE run = $1 AND seq IN"
                       " (SELECT seq FROM run_signals WHERE run = $1 AND taken_by = $2)"
                       " ORDER BY name, seq";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_I(ordinal));
    bool more = true;
    while (more && db_next(rows)) {
        struct run_signal s;
        read_row(rows, &s);
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
