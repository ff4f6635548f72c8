/* What a due timer does: it expires a lease, ends a sleep, retries an attempt, enforces a
 * deadline, starts a delayed run, reports a child's end, or continues a run. */
#ifndef PAWL_CORE_BACKGROUND_TIMER_FIRE_H
#define PAWL_CORE_BACKGROUND_TIMER_FIRE_H

#include "core/txn/tx.h"
#include "store/run/timers.h"

/* Inside a transaction, with all consequences. On an error the transaction must be rolled back. */
MUST_CHECK enum err timer_fire(struct tx *tx, const struct timer *timer, struct problem *p);

#endif
