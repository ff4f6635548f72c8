/* Suspensions as rows. */
#include "store/run/suspensions.h"

#include "store/columns.h"

#define SUSPENSION_COLUMNS(X, p)               \
    X(p, 1, INT, run, run)                     \
    X(p, 2, COUNT, ordinal, ordinal)           \
    X(p, 3, COUNT, num, num)                   \
    X(p, 4, COUNT, lease, lease)               \
    X(p, 5, TEXT, name, name)                  \
    X(p, 6, TIME_OR_NONE, until, until)        \
    X(p, 7, TEXT, signal, signal)              \
    X(p, 8, COUNT_OR_NONE, question, question) \
    X(p, 9, TIME, at, at)                      \
    X(p, 10, TEXT, resumed_by, resumed_by)
COLUMNS_NUMBERED(SUSPENSION_COLUMNS, SUSPENSION);

#define SELECT_SUSPENSIONS COLUMNS_SELECT(SUSPENSION_COLUMNS, "") " FROM suspensions"
#define INSERT_SUSPENSION COLUMNS_INSERT("suspensions", SUSPENSION_COLUMNS)

enum err suspensions_put(struct db *db, const struct suspension *s)
{
    static const char SQL[] = INSERT_SUSPENSION
        " ON CONFLICT (run, ordinal) DO UPDATE SET num = excluded.num, lease = excluded.lease,"
        " name = excluded.name, until = excluded.until, signal = excluded.signal,"
        " question = excluded.question, at = excluded.at, resumed_by = excluded.resumed_by";
    assert(s->num > 0 && (s->until >= 0 || s->signal.ptr != NULL || s->question > 0));
    return DB_EXEC(db, SQL, NULL, SUSPENSION_COLUMNS(COLUMN_BIND, s));
}

static void read_row(struct db_rows *rows, struct suspension *s)
{
    *s = (struct suspension){SUSPENSION_COLUMNS(COLUMN_READ, rows)};
}

COLUMNS_READ_ONE(read_one, struct suspension, SUSPENSION_COLUMNS, read_row);

enum err suspensions_find(struct db *db, int64_t run, int64_t ordinal, struct arena *arena,
                          bool *ret_found, struct suspension *ret)
{
    static const char SQL[] = SELECT_SUSPENSIONS " WHERE run = $1 AND ordinal = $2";
    return read_one(DB_QUERY(db, SQL, DB_I(run), DB_I(ordinal)), arena, ret_found, ret);
}

enum err suspensions_resume(struct db *db, int64_t run, int64_t ordinal, struct str resumed_by)
{
    static const char SQL[] = "UPDATE suspensions SET resumed_by = $3"
                              " WHERE run = $1 AND ordinal = $2 AND resumed_by IS NULL";
    int64_t changed = 0;
    enum err e = DB_EXEC(db, SQL, &changed, DB_I(run), DB_I(ordinal), DB_T(resumed_by));
    return e == ERR_OK && changed != 1 ? ERR_DAMAGED : e;
}

enum err suspensions_want(struct db *db, int64_t run, int64_t ordinal, struct str signal, bool *ret)
{
    static const char SQL[] = "SELECT 1 FROM suspensions"
                              " WHERE run = $1 AND ordinal = $2 AND signal = $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_I(ordinal), DB_T(signal));
    *ret = db_next(rows);
    return db_rows_end(rows);
}
