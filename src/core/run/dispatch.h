/* Starting queued runs as soon as every limit that applies to them has room.
 *
 * The next to start is, of the runs of a tenant that are not blocked by a scope, the one with the
 * highest priority, and of those the one made first. Found by lines (store/queue.h), under one
 * invariant that holds whenever an op is over and neither `draining` nor `sweeping` is set:
 *
 *   a line that waits for a scope waits for a full one, or so many better lines of that scope as
 *   it has room for wait for the tenant instead; and if a line waits for its tenant, that is full.
 *
 * So a freed slot looks at the first lines of its scopes and its tenant, never at the whole queue.
 * Between tenants there is no contest for slots, only for the writer's time: where many can start
 * at once, tenants take turns, each with as many runs as its weight. */
#ifndef PAWL_CORE_RUN_DISPATCH_H
#define PAWL_CORE_RUN_DISPATCH_H

#include "core/txn/tx.h"
#include "store/run/limit_keys.h"

/* After an op has freed slots: starts what they are enough for, a bounded number; the rest is left
 * to dispatch_turn(). */
MUST_CHECK enum err dispatch_freed(struct tx *tx, struct problem *p);

/* A tenant's limit was raised; or the limits of a workflow of it changed; or nobody knows. */
void dispatch_tenant(struct tx *tx);
void dispatch_workflow(struct tx *tx, int64_t tenant);
void dispatch_all(struct tx *tx);
bool dispatch_is_due(const struct tx *tx);
/* Are queued runs of the tenant about to begin? Then its free slots are theirs. */
MUST_CHECK enum err dispatch_concerns(struct tx *tx, const struct tenant *tenant, bool *ret);
/* Nothing of the tenant can be started, whatever room there is: its queue waits until then, and
 * those of others go on. */
void dispatch_set_aside(struct tx *tx, int64_t tenant, int64_t until_ms);
/* When the first of them comes back; -1: none is set aside. */
int64_t dispatch_aside_until(const struct tx *tx);
void dispatch_bring_back(struct tx *tx, int64_t now_ms);
/* One slice of what is due. Inside a transaction. On an error tx->dispatching says with whom. */
MUST_CHECK enum err dispatch_turn(struct tx *tx, struct problem *p);

#endif
