/* A version of a type was given another queue: the open calls of its entities follow, a few in each
 * turn. Otherwise they would wait for workers that may be gone. */
#ifndef PAWL_CORE_ENTITY_ENTITY_REQUEUE_H
#define PAWL_CORE_ENTITY_ENTITY_REQUEUE_H

#include "core/txn/tx.h"

/* One slice; *ret_more when there is more to do. Inside a transaction. */
MUST_CHECK enum err entity_requeue_slice(struct tx *tx, bool *ret_more);

#endif
