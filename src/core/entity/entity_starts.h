/* Runs that an entity's answers start. They are noted in the transaction that applies the answer;
 * core/background/entity_starts_due.h starts them in turns of their own, once each. So a limit that
 * is reached holds up neither the answer nor anything else of the entity. */
#ifndef PAWL_CORE_ENTITY_ENTITY_STARTS_H
#define PAWL_CORE_ENTITY_ENTITY_STARTS_H

#include "core/entity/entity_txn.h"
#include "domain/entity/entity_answer.h"

MUST_CHECK enum err entity_starts_note(struct entity_txn *m, const struct job *job,
                                       const struct entity_answer *answer);
/* The entity's starts are due then. */
MUST_CHECK enum err entity_starts_arm(struct tx *tx, const struct entity *entity, int64_t due_at);

#endif
