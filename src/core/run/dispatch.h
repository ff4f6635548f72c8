/* Starting queued runs as soon as every limit that applies to them has room.
 *
 * The next to start is, of the runs of a tenant that are not blocked by a scope, the one with the
 * highest priority, and of those the oldest. Queue groups (store/run/run_queue.h) find it, under
 * one invariant that holds whenever an op is over and neither `draining` nor `sweeping` is set:
 *
 *   a line that waits for a scope waits for a full one, or so many better lines of that scope as
 *   it has room for wait for the tenant instead; and if a line waits for its tenant, that is full.
 *
 * So a freed slot looks at the first lines of its scopes and its tenant, never at the whole queue.
 * Between tenants there is no contest for slots, only for the writer's time: where many can start
 * at once, tenants take turns, each with as many runs as its weight. */
#ifndef PAWL_CORE_RUN_DISPATCH_H
#define PAWL_CORE_RUN_DISPATCH_H

#include "core/admission/dispatch_due.h"

/* After an op has freed slots: starts what they are enough for, a bounded number; the rest is left
 * to dispatch_turn(). */
MUST_CHECK enum err dispatch_freed(struct tx *tx, struct problem *p);

/* One slice of what is due. Inside a transaction. On an error tx->dispatching says with whom. */
MUST_CHECK enum err dispatch_turn(struct tx *tx, struct problem *p);

#endif
