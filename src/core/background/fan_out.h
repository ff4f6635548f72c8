/* Makes deliveries for webhooks from the feed: one for every event and every webhook that wants it.
 * The writer does it in small slices. A slice stores its deliveries and how far it has come in one
 * transaction, so each delivery is made exactly once. It costs nothing while there is no webhook.
 */
#ifndef PAWL_CORE_BACKGROUND_FAN_OUT_H
#define PAWL_CORE_BACKGROUND_FAN_OUT_H

#include "core/txn/tx.h"
#include "store/outbox/webhooks.h"

struct fan_out {
    bool any;        /* there is a webhook */
    int64_t through; /* rows of the feed up to here are done */
    int64_t seq;     /* of the row after it, the events up to here are */
    int64_t kept;    /* `through` as it is stored */
    int64_t at;      /* not before this time (monotonic ms) */
};

/* Is there something to do, now or at f->at? */
bool fan_out_is_behind(const struct fan_out *f, const struct tx *tx);
/* One slice, inside a transaction. It first reads how far it has come if
 * tx->pending->webhooks_changed is set: at the start, after webhooks were created or deleted, and
 * after a rollback. */
MUST_CHECK enum err fan_out_slice(struct fan_out *f, struct tx *tx);
/* Stores how far it has come, if that has changed. Called now and then, because slices that only
 * pass rows of tenants without webhooks store nothing. */
MUST_CHECK enum err fan_out_keep(struct fan_out *f, struct tx *tx);

/* --- for use cases that change webhooks --- */

/* A webhook was created or deleted; `left` is how many there are now. */
MUST_CHECK enum err fan_out_webhooks_changed(struct tx *tx, int64_t left);
/* Stores a delivery that is due at once; fills in num, id, state and times. */
struct delivery;
MUST_CHECK enum err fan_out_deliver(struct tx *tx, struct delivery *d);

#endif
