/* What happened in each minute, as rows. */
#include "store/minutes.h"

#include "base/json.h"
#include "store/columns.h"

struct minute_row {
    int64_t tenant;
    int64_t minute;
    struct minute_counts counts; /* but for the waits */
    struct str waits;            /* JSON: an array of counts, without zeros at its end */
};

#define MINUTE_COLUMNS(X, p)                                       \
    X(p, 1, INT, tenant, tenant)                                   \
    X(p, 2, COUNT, minute, minute)                                 \
    X(p, 3, COUNT, starts, counts.figures[MINUTE_STARTS])          \
    X(p, 4, COUNT, succeeded, counts.figures[MINUTE_SUCCEEDED])    \
    X(p, 5, COUNT, failed, counts.figures[MINUTE_FAILED])          \
    X(p, 6, COUNT, denied, counts.figures[MINUTE_DENIED])          \
    X(p, 7, COUNT, cancelled, counts.figures[MINUTE_CANCELLED])    \
    X(p, 8, COUNT, timed_out, counts.figures[MINUTE_TIMED_OUT])    \
    X(p, 9, COUNT, replays, counts.figures[MINUTE_REPLAYS])        \
    X(p, 10, COUNT, mismatches, counts.figures[MINUTE_MISMATCHES]) \
    X(p, 11, COUNT, refused, counts.figures[MINUTE_REFUSED])       \
    X(p, 12, TEXT, waits, waits)
COLUMNS_NUMBERED(MINUTE_COLUMNS, MINUTE);

#define SELECT_MINUTES COLUMNS_SELECT(MINUTE_COLUMNS, "") " FROM minutes"
#define INSERT_MINUTE COLUMNS_INSERT("minutes", MINUTE_COLUMNS)

static size_t waits_length(const struct minute_counts *c)
{
    size_t length = WAIT_BUCKETS;
    while (length > 0 && c->waits[length - 1] == 0)
        length--;
    return length;
}

static void write_waits(const struct minute_counts *c, struct buf *out)
{
    struct json_out o = json_out_to(out);
    json_open(&o, NULL, '[');
    size_t length = waits_length(c);
    for (size_t i = 0; i < length; i++)
        json_add_int(&o, NULL, c->waits[i]);
    json_close(&o, ']');
}

static bool waits_of(const struct json *list, int64_t waits[static WAIT_BUCKETS])
{
    size_t length = json_length(list);
    bool sound = json_is(list, JSON_KIND_LIST) && length <= WAIT_BUCKETS;
    for (size_t i = 0; i < length && sound; i++)
        sound = json_whole_of(json_element(list, i), &waits[i]) && waits[i] >= 0;
    return sound;
}

static void read_waits(struct db_rows *rows, struct minute_row *r)
{
    struct json *list = NULL;
    if (r->waits.ptr == NULL)
        return;
    enum err e = json_read_kept(r->waits, &list);
    if (e == ERR_OK && !waits_of(list, r->counts.waits))
        e = ERR_DAMAGED;
    db_understood(rows, MINUTE_AT_waits, e);
    json_free(list);
}

static void read_row(struct db_rows *rows, struct minute_row *r)
{
    *r = (struct minute_row){MINUTE_COLUMNS(COLUMN_READ, rows)};
    read_waits(rows, r);
}

enum err minutes_put(struct db *db, int64_t tenant, int64_t minute,
                     const struct minute_counts *counts)
{
    static const char SQL[] = INSERT_MINUTE
        " ON CONFLICT (tenant, minute) DO UPDATE SET starts = excluded.starts,"
        " succeeded = excluded.succeeded, failed = excluded.failed, denied = excluded.denied,"
        " cancelled = excluded.cancelled, timed_out = excluded.timed_out,"
        " replays = excluded.replays, mismatches = excluded.mismatches,"
        " refused = excluded.refused, waits = excluded.waits";
    struct buf waits;
    buf_init(&waits, WAIT_BUCKETS * 21 + 2);
    struct minute_row row = {.tenant = tenant, .minute = minute, .counts = *counts};
    if (waits_length(counts) > 0) {
        write_waits(counts, &waits);
        row.waits = buf_str(&waits);
    }
    enum err e =
        buf_ok(&waits) ? DB_EXEC(db, SQL, NULL, MINUTE_COLUMNS(COLUMN_BIND, &row)) : ERR_NO_MEMORY;
    buf_release(&waits);
    return e;
}

enum err minutes_add(struct db *db, int64_t tenant, int64_t minute,
                     const struct minute_counts *counts)
{
    static const char SQL[] = SELECT_MINUTES " WHERE tenant = $1 AND minute = $2";
    struct minute_counts sum = *counts;
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(tenant), DB_I(minute));
    if (db_next(rows)) {
        struct minute_row row;
        read_row(rows, &row);
        if (!db_skip_damaged(rows)) /* else the new counts replace it */
            minute_counts_add(&sum, &row.counts);
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK ? minutes_put(db, tenant, minute, &sum) : e;
}

enum err minutes_last(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT COALESCE(MAX(minute), -1) FROM minutes";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret = db_next(rows) ? db_int(rows, 0) : -1;
    return db_rows_end(rows);
}

enum err minutes_list(struct db *db, int64_t tenant, int64_t from,
                      void (*each)(void *ctx, int64_t minute, const struct minute_counts *counts),
                      void *ctx)
{
    static const char SQL[] =
        SELECT_MINUTES " WHERE tenant = $1 AND minute >= $2 ORDER BY minute LIMIT $3";
    struct db_rows *rows =
        DB_QUERY(db, SQL, DB_I(tenant), DB_I(from), DB_I((int64_t)MINUTES_OF_DAY + 1));
    while (db_next(rows)) {
        struct minute_row row;
        read_row(rows, &row);
        if (!db_skip_damaged(rows))
            each(ctx, row.minute, &row.counts);
    }
    return db_rows_end(rows);
}

enum err minutes_drop(struct db *db, int64_t before, int64_t limit, int64_t *ret_removed)
{
    static const char SQL[] =
        "DELETE FROM minutes WHERE (tenant, minute) IN (SELECT tenant, minute FROM minutes"
        " WHERE minute < $1 ORDER BY minute LIMIT $2)";
    return DB_EXEC(db, SQL, ret_removed, DB_I(before), DB_I(limit));
}
