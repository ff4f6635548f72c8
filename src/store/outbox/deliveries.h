/* Deliveries of webhooks: what is to be sent, and what became of it.
 *
 *   pending ── take ──▶ sending ── finish ──▶ delivered, failed, or pending again
 *      ▲                   │
 *      └── its next_at has passed: the server stopped while it was sending
 */
#ifndef PAWL_STORE_OUTBOX_DELIVERIES_H
#define PAWL_STORE_OUTBOX_DELIVERIES_H

#include "base/arena.h"
#include "store/db.h"

#define DELIVERY_STATES(X)             \
    X(DELIVERY_PENDING, "pending")     \
    X(DELIVERY_SENDING, "sending")     \
    X(DELIVERY_DELIVERED, "delivered") \
    X(DELIVERY_FAILED, "failed")

enum delivery_state {
#define X(symbol, name) symbol,
    DELIVERY_STATES(X)
#undef X
        DELIVERY_STATE_COUNT
};

const char *delivery_state_name(enum delivery_state state);

struct delivery {
    int64_t num; /* the time in its id; rises */
    struct uuid id;
    int64_t webhook;
    int64_t tenant;
    int64_t owner; /* the num of the run or entity that the event is about; -1: it is a test */
    struct str event_id;
    struct str event_type;
    struct str body; /* JSON; not in lists */
    enum delivery_state state;
    int64_t attempts;
    int64_t schedule_from;
    int64_t next_at;       /* -1: it has ended */
    int64_t last_status;   /* of the last attempt; -1: there was no response */
    struct str last_error; /* ptr NULL: none */
    int64_t created_at;
    int64_t finished_at; /* -1: not yet */
};

/* The highest number so far; 0 when there is none. */
MUST_CHECK enum err deliveries_last_num(struct db *db, int64_t *ret);
MUST_CHECK enum err deliveries_insert(struct db *db, const struct delivery *d);
/* State, attempts, times and results. */
MUST_CHECK enum err deliveries_update(struct db *db, const struct delivery *d);

/* Without its body. Text is copied to the arena. */
MUST_CHECK enum err deliveries_find(struct db *db, int64_t webhook, struct uuid id,
                                    struct arena *arena, bool *ret_found, struct delivery *ret);
/* Newest first, below `before`, without bodies. Text is borrowed for the call. */
typedef void delivery_each(void *ctx, const struct delivery *d);
MUST_CHECK enum err deliveries_list(struct db *db, int64_t webhook, int64_t before, int64_t limit,
                                    delivery_each *each, void *ctx);

/* --- sending --- */

/* Those that are due, by next_at and num, with bodies. Text is borrowed for the call; `each`
 * returns false to stop. */
typedef bool delivery_due_each(void *ctx, const struct delivery *d);
MUST_CHECK enum err deliveries_due(struct db *db, int64_t webhook, int64_t now_ms, int64_t limit,
                                   delivery_due_each *each, void *ctx);
/* Hands it out for this attempt; it is due again after `until_ms`. */
MUST_CHECK enum err deliveries_take(struct db *db, int64_t num, int64_t attempt, int64_t until_ms);
/* Makes those due that a server was sending when it stopped, with a lease until `until_ms` at most.
 * Only while no other server runs. */
MUST_CHECK enum err deliveries_give_back(struct db *db, int64_t now_ms, int64_t until_ms);
/* When the first one of an enabled webhook is due after this time; -1: none. */
MUST_CHECK enum err deliveries_next_after(struct db *db, int64_t now_ms, int64_t *ret);

/* How many wait, at most `limit`; webhook 0: of all webhooks. */
MUST_CHECK enum err deliveries_waiting(struct db *db, int64_t webhook, int64_t limit, int64_t *ret);

/* --- sweeping --- */

/* The lowest number of the newest `kept`; 0 when there are not so many. */
MUST_CHECK enum err deliveries_kept_from(struct db *db, int64_t webhook, int64_t kept,
                                         int64_t *ret);
/* Which may be removed: below `over` those that have ended, below `any` all. */
struct deliveries_below {
    int64_t over;
    int64_t any;
};
/* Looks at up to `limit` of the webhook's deliveries above *at, removes those that may be removed,
 * and moves *at past them. *ret_looked: how many there were. */
MUST_CHECK enum err deliveries_sweep(struct db *db, int64_t webhook,
                                     const struct deliveries_below *below, int64_t limit,
                                     int64_t *at, int64_t *ret_looked);

#endif
