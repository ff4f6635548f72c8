/* Runs one op inside a transaction, with idempotency around its use case. Every route that changes
 * something runs this way. */
#ifndef PAWL_CORE_USECASE_EXECUTE_H
#define PAWL_CORE_USECASE_EXECUTE_H

#include "core/txn/op.h"
#include "core/txn/replay_stats.h"
#include "core/txn/stats/minute_stats.h"
#include "core/txn/tx.h"
#include "store/idempotency.h"

/* Looks up the idempotency key, runs the use case and stores the answer under the key. Returns
 * ERR_OK when the op was decided; op->err says whether it was rejected. After an error the whole
 * transaction must be rolled back: the store failed, the op exceeds a limit (ERR_TOO_LARGE), or it
 * was refused after it had changed something, which is a bug (ERR_INTERNAL). */
MUST_CHECK enum err execute_op(struct op *op, struct tx *tx);

/* Answers the op from a live record: it is a replay, or the key belongs to another request. Not
 * answered when the raw bytes are not enough to decide. */
MUST_CHECK enum err answer_from_record(struct op *op, struct read_tx *tx,
                                       const struct idem_record *record, bool *ret_answered);
/* Counts replays and mismatches of the record, and starts that made no run by the minute. Call it
 * when the op is decided: a batch may run it twice. */
void count_answer(const struct op *op, struct replay_stats *stats, struct minute_stats *minutes,
                  int64_t now_ms);

#endif
