/* What must be kept for those who follow the feed and are behind: the rows of the feed themselves,
 * and the runs whose events they tell of. Inside a transaction of the writer. */
#ifndef PAWL_ENGINE_FEED_HOLD_H
#define PAWL_ENGINE_FEED_HOLD_H

#include "engine/tx.h"

/* Removes old rows that everybody has passed, one slice. *ret_more: there may be more at once. */
MUST_CHECK enum err feed_hold_sweep(struct tx *tx, bool *ret_more);

/* The runs that somebody is behind with. */
struct held_runs {
    bool all; /* too many to name */
    int64_t *runs;
    size_t count;
};
/* In the transaction's arena. */
MUST_CHECK enum err feed_hold_runs(struct tx *tx, struct held_runs *ret);
bool feed_holds_run(const struct held_runs *held, int64_t run);

#endif
