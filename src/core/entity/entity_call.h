/* Calls of an entity's handler: jobs that go out with the state and what waits, and whose answers
 * are applied in one transaction, or not at all. */
#ifndef PAWL_CORE_ENTITY_ENTITY_CALL_H
#define PAWL_CORE_ENTITY_ENTITY_CALL_H

#include "core/entity/entity_txn.h"
#include "core/txn/job_owner.h"

extern const struct job_owner_ops ENTITY_CALLS;

/* A migration was asked for: a call that nobody is working on makes way for it, since there may be
 * nobody left who handles the old version. What it was about waits for the call after that.
 * *ret_migrating: a worker is migrating it right now, and nothing was changed. */
MUST_CHECK enum err entity_call_give_way(struct entity_txn *m, bool *ret_migrating);
#endif
