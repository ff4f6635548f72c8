/* Timers as rows. */
#include "store/run/timers.h"

#include "base/limits.h"
#include "store/columns.h"

#define TIMER_COLUMNS(X, p)              \
    X(p, 1, INT, due_at, due_at)         \
    X(p, 2, INT, run, owner)             \
    X(p, 3, INT, ordinal, ordinal)       \
    X(p, 4, INT, generation, generation) \
    X(p, 5, INT, tenant, tenant)
COLUMNS_NUMBERED(TIMER_COLUMNS, TIMER);

#define SELECT_TIMERS COLUMNS_SELECT(TIMER_COLUMNS, "") " FROM timers"
#define ON_CONFLICT \
    " ON CONFLICT (due_at, run, ordinal) DO UPDATE SET generation = excluded.generation"

int timer_order(const struct timer *a, const struct timer *b)
{
    if (a->due_at != b->due_at)
        return a->due_at < b->due_at ? -1 : 1;
    if (a->owner != b->owner)
        return a->owner < b->owner ? -1 : 1;
    return (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

enum err timers_insert(struct db *db, const struct timer *t)
{
    static const char SQL[] = COLUMNS_INSERT("timers", TIMER_COLUMNS) ON_CONFLICT;
    return DB_EXEC(db, SQL, NULL, TIMER_COLUMNS(COLUMN_BIND, t));
}

/* Statements with many rows: most of the cost of one with a single row is not the row's. */
enum { ROWS_TOGETHER = 8 };

/* A row that is there already stays as it is. An update of it could fail, and for that SQLite would
 * keep a copy of each page that the statement changes. */
static enum err insert_new(struct db *db, const struct timer *t, int64_t *ret_inserted)
{
    static const char SQL[] =
        "INSERT INTO timers (due_at, run, ordinal, generation, tenant) VALUES"
        " ($1, $2, $3, $4, $5), ($6, $7, $8, $9, $10), ($11, $12, $13, $14, $15),"
        " ($16, $17, $18, $19, $20), ($21, $22, $23, $24, $25), ($26, $27, $28, $29, $30),"
        " ($31, $32, $33, $34, $35), ($36, $37, $38, $39, $40)"
        " ON CONFLICT (due_at, run, ordinal) DO NOTHING";
    struct db_value values[ROWS_TOGETHER * TIMER_COLUMNS_END];
    for (size_t i = 0; i < ROWS_TOGETHER; i++) {
        const struct db_value row[] = {TIMER_COLUMNS(COLUMN_BIND, &t[i])};
        memcpy(&values[i * TIMER_COLUMNS_END], row, sizeof(row));
    }
    return db_exec_values(db, SQL, values, ARRAY_LEN(values), ret_inserted);
}

static enum err insert_together(struct db *db, const struct timer *t)
{
    int64_t inserted = 0;
    enum err e = insert_new(db, t, &inserted);
    for (size_t i = 0; inserted < ROWS_TOGETHER && i < ROWS_TOGETHER && e == ERR_OK; i++)
        e = timers_insert(db, &t[i]);
    return e;
}

enum err timers_insert_all(struct db *db, const struct timer *timers, size_t count)
{
    enum err e = ERR_OK;
    size_t done = 0;
    for (; e == ERR_OK && done + ROWS_TOGETHER <= count; done += ROWS_TOGETHER)
        e = insert_together(db, timers + done);
    for (; e == ERR_OK && done < count; done++)
        e = timers_insert(db, &timers[done]);
    return e;
}

enum err timers_insert_missing(struct db *db)
{
    static const char SQL[] =
        "INSERT INTO timers (due_at, run, ordinal, generation, tenant)"
        " SELECT j.due_at, j.run, j.ordinal, j.lease_epoch, j.tenant FROM jobs j"
        " WHERE j.run IN " OWNERS_AHEAD " AND " JOB_MAY_WAIT " AND j.due_at IS NOT NULL"
        " UNION ALL SELECT r.first_due, r.num, 1, 0, r.tenant FROM runs r WHERE r.num "
        "IN " OWNERS_AHEAD " AND r.first_due IS NOT NULL AND " FIRST_IS_IN_RUN ON_CONFLICT;
    return db_exec_values(db, SQL, NULL, 0, NULL);
}

enum err timers_folded(struct db *db, int64_t through)
{
    static const char SQL[] = "INSERT INTO indexed (name, through) VALUES ('timers', $1)"
                              " ON CONFLICT (name) DO UPDATE SET through = excluded.through"
                              " WHERE indexed.through <> excluded.through";
    return DB_EXEC(db, SQL, NULL, DB_I(through));
}

enum err timers_folded_through(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT through FROM indexed WHERE name = 'timers'";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err timers_delete(struct db *db, const struct timer *t)
{
    static const char SQL[] =
        "DELETE FROM timers WHERE due_at = $1 AND run = $2 AND ordinal = $3 AND generation = $4";
    return DB_EXEC(db, SQL, NULL, DB_I(t->due_at), DB_I(t->owner), DB_I(t->ordinal),
                   DB_I(t->generation));
}

static struct timer read_timer(struct db_rows *rows)
{
    return (struct timer){TIMER_COLUMNS(COLUMN_READ, rows)};
}

enum err timers_due(struct db *db, int64_t now_ms, size_t limit, struct timer *out,
                    size_t *ret_count)
{
    static const char SQL[] =
        SELECT_TIMERS " WHERE due_at <= $1 ORDER BY due_at, run, ordinal LIMIT $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(now_ms), DB_I((int64_t)limit));
    size_t count = 0;
    while (db_next(rows))
        out[count++] = read_timer(rows);
    *ret_count = count;
    return db_rows_end(rows);
}

static enum err each_timer(struct db_rows *rows, timer_each *each, void *ctx)
{
    bool more = true;
    while (more && db_next(rows)) {
        struct timer timer = read_timer(rows);
        more = each(ctx, &timer);
    }
    return db_rows_end(rows);
}

enum err timers_due_after(struct db *db, int64_t now_ms, const struct timer *after, int64_t limit,
                          timer_each *each, void *ctx)
{
    static const char SQL[] =
        SELECT_TIMERS " WHERE due_at <= $1 AND (due_at, run, ordinal) > ($2, $3, $4)"
                      " ORDER BY due_at, run, ordinal LIMIT $5";
    return each_timer(DB_QUERY(db, SQL, DB_I(now_ms), DB_I(after->due_at), DB_I(after->owner),
                               DB_I(after->ordinal), DB_I(limit)),
                      each, ctx);
}

enum err timers_due_latest(struct db *db, int64_t now_ms, int64_t limit, timer_each *each,
                           void *ctx)
{
    static const char SQL[] =
        SELECT_TIMERS " WHERE due_at <= $1"
                      " ORDER BY due_at DESC, run DESC, ordinal DESC LIMIT $2";
    return each_timer(DB_QUERY(db, SQL, DB_I(now_ms), DB_I(limit)), each, ctx);
}

enum err timers_next(struct db *db, int64_t *ret_due_at)
{
    static const char SQL[] = "SELECT due_at FROM timers ORDER BY due_at LIMIT 1";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret_due_at = db_next(rows) ? db_int(rows, 0) : -1;
    return db_rows_end(rows);
}
