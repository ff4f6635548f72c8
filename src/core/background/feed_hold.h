/* What must be kept for those who follow the feed and are behind: the rows of the feed themselves,
 * and the events that they tell of. Inside a transaction of the writer. */
#ifndef PAWL_CORE_BACKGROUND_FEED_HOLD_H
#define PAWL_CORE_BACKGROUND_FEED_HOLD_H

#include "core/txn/tx.h"

/* Removes old rows that everybody has passed, one slice. *ret_more: there may be more at once. */
MUST_CHECK enum err feed_hold_sweep(struct tx *tx, bool *ret_more);

/* A run or an entity whose events somebody has not been told of, from this one on. */
struct held_run {
    int64_t run;
    int64_t first_seq;
};

/* Those that somebody is behind with. */
struct held_runs {
    bool all; /* too many to name */
    struct held_run *runs;
    size_t count;
};
/* In the transaction's arena. */
MUST_CHECK enum err feed_hold_runs(struct tx *tx, struct held_runs *ret);
/* The first event that must be kept; INT64_MAX: none must. */
int64_t feed_held_from(const struct held_runs *held, int64_t run);
bool feed_holds_run(const struct held_runs *held, int64_t run);

#endif
