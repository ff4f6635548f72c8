/* Old generations of entities go, and all of those that were deleted, in slices. */
#ifndef PAWL_CORE_ENTITY_ENTITY_SWEEP_H
#define PAWL_CORE_ENTITY_ENTITY_SWEEP_H

#include "core/txn/tx.h"

/* Where the round over entities is: each has its turn. */
struct entity_sweep {
    int64_t entity;
    bool filled; /* a slice of this round was full */
};

/* One slice, of ENTITY_SWEEP_ROWS_PER_TURN_MAX rows at most. Inside a transaction. *ret_more:
 * there may be more to do at once. Events that were not published to every reader yet stay until
 * they are, and so does the row that names their owner, also when the entity was deleted. */
MUST_CHECK enum err entity_sweep_slice(struct entity_sweep *s, struct tx *tx, bool *ret_more);

#endif
