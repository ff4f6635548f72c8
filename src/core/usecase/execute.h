/* One op inside a transaction: idempotency around the use case. The same for every route that
 * changes something. */
#ifndef PAWL_CORE_USECASE_EXECUTE_H
#define PAWL_CORE_USECASE_EXECUTE_H

#include "core/txn/op.h"
#include "core/txn/replay_stats.h"
#include "core/txn/tx.h"
#include "store/idempotency.h"

/* Claim, effect and stored answer. Returns ERR_OK when the op was decided, also when it was
 * rejected (op->err says). An error means that the whole transaction must be rolled back: the store
 * failed, or the op did not fit (ERR_TOO_LARGE), or was refused after it had changed something,
 * which is a bug (ERR_INTERNAL). */
MUST_CHECK enum err execute_op(struct op *op, struct tx *tx);

/* What a live record answers to the op: true when it did (replay or mismatch), false when bytes
 * alone cannot tell. */
bool answer_from_record(struct op *op, const struct idem_record *record);
/* Counts that answer, if there was one: when the op is over, since a batch may run it twice. */
void count_known(const struct op *op, struct replay_stats *stats, int64_t now_ms);

#endif
