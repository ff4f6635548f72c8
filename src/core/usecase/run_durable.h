/* Durable functions: what the worker of a run's job has finished is stored with the job, and the
 * job can be given up until something has come. As core/txn/job_owner.h wants it. */
#ifndef PAWL_CORE_USECASE_RUN_DURABLE_H
#define PAWL_CORE_USECASE_RUN_DURABLE_H

#include "core/txn/job_owner.h"

MUST_CHECK enum err run_checkpoint(struct op *op, struct tx *tx, const struct checkpoint_input *in,
                                   struct job *job);
MUST_CHECK enum err run_suspend(struct op *op, struct tx *tx, const struct suspend_input *in,
                                struct job *job);

/* The members checkpoints, checkpoint_errors, suspended and resumed_by of a job that is shown or
 * handed out; each only if there is something to say. */
MUST_CHECK enum err run_durable_show(struct read_tx *tx, const struct job *job, struct json_out *o);

#endif
