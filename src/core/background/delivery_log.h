/* The log of deliveries stays bounded: what is over goes when it is old or one of too many, and all
 * of a webhook that was deleted. In slices, like retention.h. */
#ifndef PAWL_CORE_BACKGROUND_DELIVERY_LOG_H
#define PAWL_CORE_BACKGROUND_DELIVERY_LOG_H

#include "core/txn/tx.h"
#include "store/outbox/deliveries.h"

/* Where the walk through the webhooks is. */
struct delivery_log {
    int64_t webhook; /* 0: at the beginning */
    bool deleted;
    struct deliveries_below below; /* what may go */
    int64_t at;                    /* looked at up to here */
    bool skips;                    /* this webhook failed: on with the next */
};

/* *ret_more is false when the walk is at its end and begins anew the next time. */
MUST_CHECK enum err delivery_log_slice(struct delivery_log *log, struct tx *tx, bool *ret_more);

#endif
