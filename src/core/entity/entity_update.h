/* The outcome of an update, as its sender and later readers see it. */
#ifndef PAWL_CORE_ENTITY_ENTITY_UPDATE_H
#define PAWL_CORE_ENTITY_ENTITY_UPDATE_H

#include "core/txn/op.h"
#include "store/entity/inbox.h"

/* The answer to who sent it: 202 while nothing has come of it. */
void entity_update_answer(struct op *op, const struct entity_update *update, bool duplicate);
/* The same once the outcome was read by UC_GET_UPDATE, whose answer `shown` is. */
void entity_update_answer_shown(struct op *op, const struct answer *shown);

#endif
