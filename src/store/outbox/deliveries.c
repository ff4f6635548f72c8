/* Deliveries of events to webhooks, as rows. */
#include "store/outbox/deliveries.h"

#include "store/columns.h"

#define COLUMN_BIND_DELIVERY_STATE(value) COLUMN_BIND_WORD(STATES[value])
#define COLUMN_READ_DELIVERY_STATE(rows, at) \
    COLUMN_READ_WORD(rows, at, state_of, DELIVERY_STATE_COUNT)
#define COLUMN_KEEP_DELIVERY_STATE(arena, value)

#define DELIVERY_COLUMNS(X, p)                    \
    X(p, 1, COUNT, num, num)                      \
    X(p, 2, UUID, id, id)                         \
    X(p, 3, INT, webhook, webhook)                \
    X(p, 4, INT, tenant, tenant)                  \
    X(p, 5, INT_OR_NONE, run, owner)              \
    X(p, 6, TEXT, event_id, event_id)             \
    X(p, 7, TEXT, event_type, event_type)         \
    X(p, 8, DELIVERY_STATE, state, state)         \
    X(p, 9, COUNT, attempts, attempts)            \
    X(p, 10, COUNT, schedule_from, schedule_from) \
    X(p, 11, TIME_OR_NONE, next_at, next_at)      \
    X(p, 12, TIME, created_at, created_at)
#define DELIVERY_RESULT(X, p)                       \
    X(p, 13, INT_OR_NONE, last_status, last_status) \
    X(p, 14, TEXT, last_error, last_error)          \
    X(p, 15, TIME_OR_NONE, finished_at, finished_at)
#define ALL_COLUMNS(X, p) DELIVERY_COLUMNS(X, p) DELIVERY_RESULT(X, p)
COLUMNS_NUMBERED(ALL_COLUMNS, DELIVERY);
#define SELECT_DELIVERIES COLUMNS_SELECT(ALL_COLUMNS, "") " FROM deliveries"
#define SELECT_WITH_BODY COLUMNS_SELECT(ALL_COLUMNS, "") ", body FROM deliveries"

static const char *const STATES[] = {
#define X(symbol, name) name,
    DELIVERY_STATES(X)
#undef X
};

const char *delivery_state_name(enum delivery_state state)
{
    assert(state < DELIVERY_STATE_COUNT);
    return STATES[state];
}

static enum delivery_state state_of(struct str name)
{
    enum delivery_state state = 0;
    while (state < DELIVERY_STATE_COUNT && !str_is(name, STATES[state]))
        state++;
    return state;
}

enum err deliveries_last_num(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT COALESCE(MAX(num), 0) FROM deliveries";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err deliveries_insert(struct db *db, const struct delivery *d)
{
    static const char SQL[] = COLUMNS_INSERT_WITH("deliveries", DELIVERY_COLUMNS, "body", "$13");
    assert(d->state == DELIVERY_PENDING && d->next_at >= 0);
    assert(d->attempts == 0 && d->schedule_from == 0);
    return DB_EXEC(db, SQL, NULL, DELIVERY_COLUMNS(COLUMN_BIND, d) DB_T(d->body));
}

enum err deliveries_update(struct db *db, const struct delivery *d)
{
    static const char SQL[] =
        "UPDATE deliveries SET state = $2, attempts = $3, schedule_from = $4, next_at = $5,"
        " last_status = $6, last_error = $7, finished_at = $8 WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(d->num), DB_T(str_of(STATES[d->state])), DB_I(d->attempts),
                   DB_I(d->schedule_from), DB_I_OR_NULL(d->next_at), DB_I_OR_NULL(d->last_status),
                   DB_T(d->last_error), DB_I_OR_NULL(d->finished_at));
}

/* --- reading --- */

/* The schedule of retries cannot begin after more attempts than were made. */
static void read_row(struct db_rows *rows, struct delivery *d)
{
    *d = (struct delivery){ALL_COLUMNS(COLUMN_READ, rows)};
    if (d->schedule_from > d->attempts)
        db_damaged(rows, DELIVERY_AT_schedule_from);
}

COLUMNS_READ_ONE(read_one, struct delivery, ALL_COLUMNS, read_row);

enum err deliveries_find(struct db *db, int64_t webhook, struct uuid id, struct arena *arena,
                         bool *ret_found, struct delivery *ret)
{
    static const char SQL[] = SELECT_DELIVERIES " WHERE num = $1 AND id = $2 AND webhook = $3";
    return read_one(DB_QUERY(db, SQL, DB_I(uuid_time(id)), DB_U(id), DB_I(webhook)), arena,
                    ret_found, ret);
}

enum err deliveries_list(struct db *db, int64_t webhook, int64_t before, int64_t limit,
                         delivery_each *each, void *ctx)
{
    static const char SQL[] =
        SELECT_DELIVERIES " WHERE webhook = $1 AND num < $2 ORDER BY num DESC LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(webhook), DB_I(before), DB_I(limit));
    while (db_next(rows)) {
        struct delivery d;
        read_row(rows, &d);
        if (!db_skip_damaged(rows))
            each(ctx, &d);
    }
    return db_rows_end(rows);
}

/* --- sending --- */

enum err deliveries_due(struct db *db, int64_t webhook, int64_t now_ms, int64_t limit,
                        delivery_due_each *each, void *ctx)
{
    static const char SQL[] =
        SELECT_WITH_BODY " WHERE webhook = $1 AND next_at IS NOT NULL AND next_at <= $2"
                         " ORDER BY next_at, num LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(webhook), DB_I(now_ms), DB_I(limit));
    bool more = true;
    while (more && db_next(rows)) {
        struct delivery d;
        read_row(rows, &d);
        d.body = db_str(rows, DELIVERY_COLUMNS_END);
        more = db_skip_damaged(rows) || each(ctx, &d);
    }
    return db_rows_end(rows);
}

enum err deliveries_take(struct db *db, int64_t num, int64_t attempt, int64_t until_ms)
{
    static const char SQL[] = "UPDATE deliveries SET state = 'sending', attempts = $2, next_at = $3"
                              " WHERE num = $1";
    return DB_EXEC(db, SQL, NULL, DB_I(num), DB_I(attempt), DB_I(until_ms));
}

enum err deliveries_give_back(struct db *db, int64_t now_ms, int64_t until_ms)
{
    static const char SQL[] = "UPDATE deliveries SET next_at = $1"
                              " WHERE webhook IN (SELECT num FROM webhooks)"
                              " AND next_at IS NOT NULL AND next_at > $1 AND next_at <= $2"
                              " AND state = 'sending'";
    return DB_EXEC(db, SQL, NULL, DB_I(now_ms), DB_I(until_ms));
}

enum err deliveries_next_after(struct db *db, int64_t now_ms, int64_t *ret)
{
    static const char SQL[] =
        "SELECT MIN(first_at) FROM (SELECT (SELECT MIN(d.next_at) FROM deliveries d"
        " WHERE d.webhook = w.num AND d.next_at IS NOT NULL AND d.next_at > $1) AS first_at"
        " FROM webhooks w WHERE w.disabled_at IS NULL) AS firsts";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(now_ms));
    *ret = db_next(rows) ? db_int_or(rows, 0, -1) : -1;
    return db_rows_end(rows);
}

enum err deliveries_waiting(struct db *db, int64_t webhook, int64_t limit, int64_t *ret)
{
    static const char SQL_ALL[] = "SELECT count(*) FROM (SELECT 1 FROM deliveries"
                                  " WHERE next_at IS NOT NULL LIMIT $1) AS waiting";
    static const char SQL_ONE[] =
        "SELECT count(*) FROM (SELECT 1 FROM deliveries"
        " WHERE next_at IS NOT NULL AND webhook = $2 LIMIT $1) AS waiting";
    struct db_rows *rows = webhook == 0 ? DB_QUERY(db, SQL_ALL, DB_I(limit))
                                        : DB_QUERY(db, SQL_ONE, DB_I(limit), DB_I(webhook));
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

/* --- sweeping --- */

enum err deliveries_kept_from(struct db *db, int64_t webhook, int64_t kept, int64_t *ret)
{
    static const char SQL[] = "SELECT num FROM deliveries WHERE webhook = $1"
                              " ORDER BY num DESC LIMIT 1 OFFSET $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(webhook), DB_I(kept - 1));
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

enum err deliveries_sweep(struct db *db, int64_t webhook, const struct deliveries_below *below,
                          int64_t limit, int64_t *at, int64_t *ret_looked)
{
    static const char SQL_RANGE[] =
        "SELECT count(*), COALESCE(MAX(num), 0) FROM (SELECT num FROM deliveries"
        " WHERE webhook = $1 AND num > $2 AND num < $3 ORDER BY num LIMIT $4) AS oldest";
    static const char SQL_REMOVE[] =
        "DELETE FROM deliveries WHERE num IN (SELECT num FROM deliveries"
        " WHERE webhook = $1 AND num > $2 AND num <= $3) AND (next_at IS NULL OR num < $4)";
    struct db_rows *rows = DB_QUERY(db, SQL_RANGE, DB_I(webhook), DB_I(*at),
                                    DB_I(MAX(below->over, below->any)), DB_I(limit));
    *ret_looked = db_next(rows) ? db_int(rows, 0) : 0;
    int64_t through = *ret_looked > 0 ? db_int(rows, 1) : 0;
    enum err e = db_rows_end(rows);
    if (e != ERR_OK || *ret_looked == 0)
        return e;
    e = DB_EXEC(db, SQL_REMOVE, NULL, DB_I(webhook), DB_I(*at), DB_I(through), DB_I(below->any));
    if (e != ERR_OK)
        return e;
    *at = through;
    return ERR_OK;
}
