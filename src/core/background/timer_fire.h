/* What a timer does when its time has come: ends of leases and sleeps, delays, deadlines, delayed
 * starts, ends of children, runs that go on. */
#ifndef PAWL_CORE_BACKGROUND_TIMER_FIRE_H
#define PAWL_CORE_BACKGROUND_TIMER_FIRE_H

#include "core/txn/tx.h"
#include "store/run/jobs.h"

/* Inside a transaction, with all that follows from it. An error means that it must be rolled back.
 */
MUST_CHECK enum err timer_fire(struct tx *tx, const struct timer *timer, struct problem *p);

#endif
