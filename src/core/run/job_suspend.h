/* Suspending a job: its worker gives the lease up until a time, a signal or a decision has come. */
#ifndef PAWL_CORE_RUN_JOB_SUSPEND_H
#define PAWL_CORE_RUN_JOB_SUSPEND_H

#include "core/run/suspension.h"
#include "core/txn/job_owner.h"

/* Suspends a running job; the caller advances the run. A signal that came before is taken at once,
 * and the job is back in its queue. `num` is the suspension's number among those of the job. On
 * success *ret is its row. */
MUST_CHECK enum err job_suspend(struct run_txn *m, struct job *job, const struct suspend_input *in,
                                int64_t num, struct suspension *ret);

/* Does the input ask for the suspension that the job's row tells of? */
MUST_CHECK enum err job_suspend_is_same(struct run_txn *m, const struct suspend_input *in,
                                        const struct suspension *s, bool *ret);

#endif
