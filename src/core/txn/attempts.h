/* The attempts of a job. A failed attempt is stored with the job: its worker, its times and its
 * error. A job that succeeds at the first attempt stores nothing here; its row says it all. */
#ifndef PAWL_CORE_TXN_ATTEMPTS_H
#define PAWL_CORE_TXN_ATTEMPTS_H

#include "core/txn/tx.h"
#include "store/run/jobs.h"

/* How an attempt failed. */
enum attempt_end { ATTEMPT_FAILED, ATTEMPT_TIMED_OUT, ATTEMPT_LEASE_EXPIRED, ATTEMPT_END_COUNT };

/* Stores the current attempt of `job`, with job->error, before the job changes its state. Keeps
 * the first and the newest ATTEMPTS_KEPT_MAX - 1 attempts. */
MUST_CHECK enum err attempt_lost(struct tx *tx, const struct job *job, enum attempt_end how);

/* Writes the member `attempts`: the failed attempts, then the running one or the one that ended
 * the job. */
MUST_CHECK enum err attempts_show(struct read_tx *tx, const struct job *job, struct json_out *o);

/* The error as timelines and attempts show it: whole, or, if it is longer than
 * ATTEMPT_ERROR_MAX, its code and the beginning of its message. ptr NULL: no memory. */
struct str attempt_error(struct read_tx *tx, struct str error);

#endif
