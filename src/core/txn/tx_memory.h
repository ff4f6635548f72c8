/* What only the writer remembers from one transaction to the next, in one table: members of struct
 * tx are made from it, and so are the functions that empty them. A rollback empties every row, so
 * nothing that was rolled back is believed later. Add a row here to remember more, or to
 * READ_MEMORY in read_tx.h if readers need it too.
 *
 * Not in the table, because a wrong value does no harm: whose turn it is to be handed a job, how
 * fast slots have been freeing, the evaluator of expressions. */
#ifndef PAWL_CORE_TXN_TX_MEMORY_H
#define PAWL_CORE_TXN_TX_MEMORY_H

#include "core/txn/cache/recent_runs.h"
#include "core/txn/cache/recent_timers.h"
#include "core/txn/dispatch_state.h"
#include "core/txn/read_tx.h"
#include "core/txn/window_stats.h"
#include "store/idempotency.h"

/* Numbers that were read; -1: not known. */
struct tx_nums {
    int64_t last;         /* of a run or an entity */
    int64_t last_feed;    /* the last row of the feed */
    int64_t runs_through; /* late_index_through() */
};
MUST_CHECK struct tx_nums *tx_nums_new(void);
void tx_nums_forget(struct tx_nums *nums);
void tx_nums_free(struct tx_nums *nums);

/* What background work has to look at, beyond what the rows say. After a rollback: everything. */
struct tx_pending {
    int64_t runs_unindexed; /* made since the index of runs was filled */
    bool holders_sought;    /* since then; a search passes over every run that is not indexed */
    bool webhooks_changed;  /* since fan_out.h has looked */
};
MUST_CHECK struct tx_pending *tx_pending_new(void);
void tx_pending_forget(struct tx_pending *pending);
void tx_pending_free(struct tx_pending *pending);

/* A table is read by its columns. */
/* clang-format off */
#define TX_MEMORY(X)                                                                               \
    /* member        type                       until           functions */                       \
    X(keys,         struct idem_keys,          UNTIL_ROLLBACK, idem_keys)                          \
    X(nums,         struct tx_nums,            UNTIL_STALE,    tx_nums)                            \
    X(window_stats, struct window_stats,       UNTIL_ROLLBACK, window_stats)                       \
    X(pending,      struct tx_pending,         UNTIL_ROLLBACK, tx_pending)                         \
    X(dispatch,     struct dispatch_state,     UNTIL_ROLLBACK, dispatch_state)                     \
    X(recent_runs,  struct recent_runs,        UNTIL_ROLLBACK, recent_runs)                        \
    X(recent_timers, struct recent_timers,     UNTIL_ROLLBACK, recent_timers)
/* clang-format on */

#endif
