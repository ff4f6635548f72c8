/* The attempts of a job. One that is lost is kept with the job: who had it, when, and its error.
 * One that succeeds at once leaves nothing here; the job's row tells of it. */
#ifndef PAWL_CORE_TXN_ATTEMPTS_H
#define PAWL_CORE_TXN_ATTEMPTS_H

#include "core/txn/tx.h"
#include "store/run/jobs.h"

/* How an attempt was lost. */
enum attempt_end { ATTEMPT_FAILED, ATTEMPT_TIMED_OUT, ATTEMPT_LEASE_EXPIRED, ATTEMPT_END_COUNT };

/* Keeps the attempt that `job` is in, with job->error, before the job moves on. Of many attempts
 * the first and the newest ATTEMPTS_KEPT_MAX - 1 stay. */
MUST_CHECK enum err attempt_lost(struct tx *tx, const struct job *job, enum attempt_end how);

/* The member `attempts`: those that were lost, then the one under way or the one that ended it. */
MUST_CHECK enum err attempts_show(struct read_tx *tx, const struct job *job, struct json_out *o);

/* An error as timelines and lists of attempts have it: whole, or, if it is longer than
 * ATTEMPT_ERROR_MAX, its code and the beginning of its message. ptr NULL: no memory. */
struct str attempt_error(struct read_tx *tx, struct str error);

#endif
