/* Turns the feed into deliveries: one for every event and every webhook that wants it. The writer
 * does it in small slices; the deliveries of a slice and how far the feed has come are one
 * transaction, so each is made exactly once. Costs nothing while there is no webhook. */
#ifndef PAWL_CORE_BACKGROUND_FAN_OUT_H
#define PAWL_CORE_BACKGROUND_FAN_OUT_H

#include "core/txn/tx.h"
#include "store/outbox/webhooks.h"

struct fan_out {
    bool any;        /* there is a webhook */
    int64_t through; /* the feed is done up to here */
    int64_t seq;     /* of the row behind it, the events up to here */
    int64_t kept;    /* what the store says of `through` */
    int64_t at;      /* not before this time (monotonic ms) */
};

/* Is there something to do, now or at f->at? */
bool fan_out_is_behind(const struct fan_out *f, const struct tx *tx);
/* One slice, inside a transaction. Begins by reading where it was if tx->pending->webhooks_changed
 * is set: at the start, after webhooks were made or deleted, and after a rollback. */
MUST_CHECK enum err fan_out_slice(struct fan_out *f, struct tx *tx);
/* Writes down how far it has come, if the store does not know: now and then, since rows of tenants
 * without webhooks are passed over without a write. */
MUST_CHECK enum err fan_out_keep(struct fan_out *f, struct tx *tx);

/* --- for who changes webhooks --- */

/* A webhook was made or deleted. `left` is how many there are now. */
MUST_CHECK enum err fan_out_webhooks_changed(struct tx *tx, int64_t left);
/* A delivery that is due at once; fills num, id, state and times. */
struct delivery;
MUST_CHECK enum err fan_out_deliver(struct tx *tx, struct delivery *d);

#endif
