/* Runs that an entity's answers want to be started. They are noted in the transaction that applies
 * the answer, and started in turns of their own, once each: a limit that is reached holds up
 * neither the answer nor anything else of the entity. */
#ifndef PAWL_CORE_ENTITY_ENTITY_STARTS_H
#define PAWL_CORE_ENTITY_ENTITY_STARTS_H

#include "core/entity/entity_txn.h"
#include "domain/entity/entity_answer.h"

MUST_CHECK enum err entity_starts_note(struct entity_txn *m, const struct job *job,
                                       const struct entity_answer *answer);
/* The timer TIMER_ENTITY_START fired. */
MUST_CHECK enum err entity_starts_due(struct tx *tx, const struct timer *timer, struct problem *p);

#endif
