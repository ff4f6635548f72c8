/* Keeps the log of deliveries bounded. Removes deliveries that have ended when they are old or too
 * many, and all deliveries of a webhook that was deleted. In slices, like retention.h. */
#ifndef PAWL_CORE_BACKGROUND_DELIVERY_LOG_H
#define PAWL_CORE_BACKGROUND_DELIVERY_LOG_H

#include "core/txn/tx.h"
#include "store/outbox/deliveries.h"

/* The position of the walk through the webhooks. */
struct delivery_log {
    int64_t webhook; /* 0: at the beginning */
    bool deleted;
    struct deliveries_below below; /* which may be removed */
    int64_t at;                    /* looked at up to here */
    bool skips;                    /* this webhook failed: go on with the next */
};

/* *ret_more: false when all webhooks were looked at; the next call begins with the first. */
MUST_CHECK enum err delivery_log_slice(struct delivery_log *log, struct tx *tx, bool *ret_more);

#endif
