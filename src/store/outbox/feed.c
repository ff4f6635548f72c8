/* The feed: a log of new events in the order of the commits. */
#include "store/outbox/feed.h"

#include "store/columns.h"

#define FEED_COLUMNS(X, p)             \
    X(p, 1, INT, num, num)             \
    X(p, 2, INT, tenant, tenant)       \
    X(p, 3, INT, run, owner)           \
    X(p, 4, INT, first_seq, first_seq) \
    X(p, 5, INT, last_seq, last_seq)   \
    X(p, 6, INT, at, at)
COLUMNS_NUMBERED(FEED_COLUMNS, FEED);
#define SELECT_FEED COLUMNS_SELECT(FEED_COLUMNS, "") " FROM feed"

static enum err insert_one(struct db *db, const struct feed_row *r)
{
    static const char SQL[] = COLUMNS_INSERT("feed", FEED_COLUMNS);
    return DB_EXEC(db, SQL, NULL, FEED_COLUMNS(COLUMN_BIND, r));
}

/* Most of the cost of a statement with a single row is not the row's. */
static enum err insert_together(struct db *db, const struct feed_row *rows)
{
    static const char SQL[] = COLUMNS_INSERT(
        "feed", FEED_COLUMNS) ", ($7, $8, $9, $10, $11, $12), ($13, $14, $15, $16, $17, $18),"
                              " ($19, $20, $21, $22, $23, $24), ($25, $26, $27, $28, $29, $30),"
                              " ($31, $32, $33, $34, $35, $36)";
    struct db_value values[FEED_ROWS_TOGETHER * FEED_COLUMNS_END];
    for (size_t i = 0; i < FEED_ROWS_TOGETHER; i++) {
        const struct db_value row[] = {FEED_COLUMNS(COLUMN_BIND, &rows[i])};
        memcpy(&values[i * FEED_COLUMNS_END], row, sizeof(row));
    }
    return db_exec_values(db, SQL, values, ARRAY_LEN(values), NULL);
}

enum err feed_insert(struct db *db, const struct feed_row *rows, size_t count)
{
    enum err e = ERR_OK;
    size_t done = 0;
    for (; e == ERR_OK && count - done >= FEED_ROWS_TOGETHER; done += FEED_ROWS_TOGETHER)
        e = insert_together(db, rows + done);
    for (; e == ERR_OK && done < count; done++)
        e = insert_one(db, &rows[done]);
    return e;
}

enum err feed_last(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT COALESCE(MAX(num), 0) FROM feed";
    bool found;
    int64_t swept;
    enum err e = feed_mark_get(db, FEED_MARK_SWEPT, &found, &swept);
    if (e != ERR_OK)
        return e;
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    int64_t last = db_next(rows) ? db_count(rows, 0) : 0;
    *ret = MAX(last, swept); /* numbers of removed rows are not used again */
    return db_rows_end(rows);
}

static enum err each_row(struct db_rows *rows, feed_each *each, void *ctx)
{
    bool more = true;
    while (more && db_next(rows)) {
        struct feed_row row = {FEED_COLUMNS(COLUMN_READ, rows)};
        more = each(ctx, &row);
    }
    return db_rows_end(rows);
}

enum err feed_list(struct db *db, int64_t after, int64_t limit, feed_each *each, void *ctx)
{
    static const char SQL[] = SELECT_FEED " WHERE num > $1 ORDER BY num LIMIT $2";
    return each_row(DB_QUERY(db, SQL, DB_I(after), DB_I(limit)), each, ctx);
}

enum err feed_list_hooked(struct db *db, int64_t after, int64_t through, int64_t limit,
                          feed_each *each, void *ctx)
{
    static const char SQL[] = COLUMNS_SELECT(
        FEED_COLUMNS, "f.") " FROM feed f WHERE f.num > $1 AND f.num <= $2"
                            " AND EXISTS (SELECT 1 FROM webhooks w WHERE w.tenant = f.tenant)"
                            " ORDER BY f.num LIMIT $3";
    return each_row(DB_QUERY(db, SQL, DB_I(after), DB_I(through), DB_I(limit)), each, ctx);
}

#define SOURCES                        \
    COLUMNS_SELECT(FEED_COLUMNS, "f.") \
    ", t.id, " OWNER_COLUMNS " FROM feed f JOIN tenants t ON t.num = f.tenant" OWNER_JOINS

static enum err each_source(struct db_rows *rows, feed_each_source *each, void *ctx)
{
    bool more = true;
    while (more && db_next(rows)) {
        struct feed_source source = {.row = {FEED_COLUMNS(COLUMN_READ, rows)},
                                     .tenant = db_str(rows, FEED_COLUMNS_END)};
        source.has_owner = owner_read(rows, FEED_COLUMNS_END + 1, &source.owner);
        more = each(ctx, &source);
    }
    return db_rows_end(rows);
}

enum err feed_sources(struct db *db, int64_t after, int64_t limit, feed_each_source *each,
                      void *ctx)
{
    static const char SQL[] = SOURCES " WHERE f.num > $1 ORDER BY f.num LIMIT $2";
    return each_source(DB_QUERY(db, SQL, DB_I(after), DB_I(limit)), each, ctx);
}

enum err feed_of_tenant(struct db *db, int64_t tenant, int64_t after, int64_t through,
                        int64_t limit, feed_each_source *each, void *ctx)
{
    static const char SQL[] = SOURCES " WHERE f.num > $1 AND f.num <= $2 AND f.tenant = $3"
                                      " ORDER BY f.num LIMIT $4";
    return each_source(DB_QUERY(db, SQL, DB_I(after), DB_I(through), DB_I(tenant), DB_I(limit)),
                       each, ctx);
}

enum err feed_count_events(struct db *db, int64_t after, int64_t *ret)
{
    static const char SQL[] =
        "SELECT COALESCE(SUM(last_seq - first_seq + 1), 0) FROM feed WHERE num > $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(after));
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err feed_mark_get(struct db *db, struct str name, bool *ret_found, int64_t *ret)
{
    static const char SQL[] = "SELECT through FROM feed_marks WHERE name = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_T(name));
    *ret_found = db_next(rows);
    *ret = *ret_found ? db_int(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err feed_mark_set(struct db *db, struct str name, int64_t through)
{
    static const char SQL[] = "INSERT INTO feed_marks (name, through) VALUES ($1, $2)"
                              " ON CONFLICT (name) DO UPDATE SET through = excluded.through";
    return DB_EXEC(db, SQL, NULL, DB_T(name), DB_I(through));
}

enum err feed_mark_drop(struct db *db, struct str name)
{
    static const char SQL[] = "DELETE FROM feed_marks WHERE name = $1";
    return DB_EXEC(db, SQL, NULL, DB_T(name));
}

enum err feed_sweep(struct db *db, int64_t before_ms, int64_t through, int64_t limit,
                    int64_t *ret_removed)
{
    static const char SQL_LAST[] = "SELECT MAX(num) FROM (SELECT num, at FROM feed WHERE num <= $1"
                                   " ORDER BY num LIMIT $2) AS oldest WHERE at < $3";
    static const char SQL[] = "DELETE FROM feed WHERE num <= $1";
    *ret_removed = 0;
    struct db_rows *rows = DB_QUERY(db, SQL_LAST, DB_I(through), DB_I(limit), DB_I(before_ms));
    int64_t last = db_next(rows) ? db_int_or(rows, 0, -1) : -1;
    enum err e = db_rows_end(rows);
    if (e != ERR_OK || last < 0)
        return e;
    e = DB_EXEC(db, SQL, ret_removed, DB_I(last));
    return e == ERR_OK ? feed_mark_set(db, FEED_MARK_SWEPT, last) : e;
}
