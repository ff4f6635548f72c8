/* What webhooks are to be sent, and how that went, as rows. */
#include "store/outbox/deliveries.h"

#define COLUMNS                                                                             \
    "num, id, webhook, tenant, run, event_id, event_type, state, attempts, schedule_from, " \
    "next_at, last_status, last_error, created_at, finished_at"

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
    static const char SQL[] =
        "INSERT INTO deliveries (num, id, webhook, tenant, run, event_id, event_type, body, state,"
        " attempts, schedule_from, next_at, created_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, $10, $11)";
    assert(d->state == DELIVERY_PENDING && d->next_at >= 0);
    return DB_EXEC(db, SQL, NULL, DB_I(d->num), DB_U(d->id), DB_I(d->webhook), DB_I(d->tenant),
                   DB_I_OR_NULL(d->run), DB_T(d->event_id), DB_T(d->event_type), DB_T(d->body),
                   DB_T(str_of(STATES[d->state])), DB_I(d->next_at), DB_I(d->created_at));
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

/* A delivery has been handed out at least as often as before its schedule began. */
static void read_row(struct db_rows *r, struct delivery *d)
{
    *d = (struct delivery){
        .num = db_count(r, 0),
        .id = db_uuid(r, 1),
        .webhook = db_int(r, 2),
        .tenant = db_int(r, 3),
        .run = db_int_or(r, 4, -1),
        .event_id = db_str(r, 5),
        .event_type = db_str(r, 6),
        .state = db_known(r, 7, state_of(db_str(r, 7)), DELIVERY_STATE_COUNT),
        .attempts = db_count(r, 8),
        .schedule_from = db_count(r, 9),
        .next_at = db_time_or(r, 10, -1),
        .last_status = db_int_or(r, 11, -1),
        .last_error = db_str(r, 12),
        .created_at = db_time(r, 13),
        .finished_at = db_time_or(r, 14, -1),
    };
    if (d->schedule_from > d->attempts)
        db_damaged(r, 9);
}

enum err deliveries_find(struct db *db, int64_t webhook, struct uuid id, struct arena *arena,
                         bool *ret_found, struct delivery *ret)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM deliveries"
                              " WHERE num = $1 AND id = $2 AND webhook = $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(uuid_time(id)), DB_U(id), DB_I(webhook));
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        read_row(rows, ret);
        full = !(arena_keep(arena, &ret->event_id) && arena_keep(arena, &ret->event_type) &&
                 arena_keep(arena, &ret->last_error));
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
}

enum err deliveries_list(struct db *db, int64_t webhook, int64_t before, int64_t limit,
                         delivery_each *each, void *ctx)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM deliveries"
                              " WHERE webhook = $1 AND num < $2 ORDER BY num DESC LIMIT $3";
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
    static const char SQL[] = "SELECT " COLUMNS ", body FROM deliveries"
                              " WHERE webhook = $1 AND next_at IS NOT NULL AND next_at <= $2"
                              " ORDER BY next_at, num LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(webhook), DB_I(now_ms), DB_I(limit));
    bool more = true;
    while (more && db_next(rows)) {
        struct delivery d;
        read_row(rows, &d);
        d.body = db_str(rows, 15);
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
    if (e == ERR_OK && *ret_looked > 0)
        e = DB_EXEC(db, SQL_REMOVE, NULL, DB_I(webhook), DB_I(*at), DB_I(through),
                    DB_I(below->any));
    if (e == ERR_OK && *ret_looked > 0)
        *at = through;
    return e;
}
