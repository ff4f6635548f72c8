/* Applying the answer of an entity's handler: the state, the timers, what is emitted and started,
 * what came of updates, and the signals that are thereby consumed, all in one transaction. */
#ifndef PAWL_CORE_ENTITY_ENTITY_APPLY_H
#define PAWL_CORE_ENTITY_ENTITY_APPLY_H

#include "core/entity/entity_txn.h"

/* `job` is running, with the output that it keeps. ERR_ANSWER_INVALID, with the problem set and
 * nothing changed, when the answer cannot be applied. */
MUST_CHECK enum err entity_apply(struct op *op, struct entity_txn *m, struct job *job,
                                 const struct json *output);

#endif
