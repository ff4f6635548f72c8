/* What the feed's readers (the relay, webhooks) still need. Rows of the feed, and the events that
 * they name, are kept until every reader has handled them. */
#ifndef PAWL_CORE_TXN_FEED_HOLD_H
#define PAWL_CORE_TXN_FEED_HOLD_H

#include "core/txn/tx.h"

/* Removes one slice of old rows that every reader has handled, and that neither timers nor counters
 * need any more. *ret_more: call it again at once. */
MUST_CHECK enum err feed_hold_sweep(struct tx *tx, bool *ret_more);

/* A run or an entity with events that a reader has not handled, from `first_seq` on. */
struct held_run {
    int64_t run;
    int64_t first_seq;
};

/* All of them. */
struct held_runs {
    bool all; /* too many to list: treat every run as held */
    struct held_run *runs;
    size_t count;
};
/* The list lives in the transaction's arena. */
MUST_CHECK enum err feed_hold_runs(struct tx *tx, struct held_runs *ret);
/* The first event of the run that must be kept; INT64_MAX: none. */
int64_t feed_held_from(const struct held_runs *held, int64_t run);
bool feed_holds_run(const struct held_runs *held, int64_t run);

#endif
