/* Calls of an entity's handler: jobs that go out with the state and what waits, and whose answers
 * are applied in one transaction, or not at all. Claims, leases and fencing are those of every job;
 * uc_jobs.c hands the jobs of entities over to here. */
#ifndef PAWL_CORE_ENTITY_ENTITY_CALL_H
#define PAWL_CORE_ENTITY_ENTITY_CALL_H

#include "core/entity/entity_txn.h"
#include "core/usecase/use_cases.h"

static inline bool job_is_of_entity(const struct job *job)
{
    return job->step == JOB_OF_ENTITY;
}

/* Hands it out: writes the job as a worker gets it. */
MUST_CHECK enum err entity_call_claim(struct op *op, struct tx *tx, const struct claim_input *in,
                                      const struct job *job, struct json_out *o);
/* A result came. *ret_changed false: it had come before. */
MUST_CHECK enum err entity_call_finish(struct op *op, struct tx *tx,
                                       const struct finish_job_input *in, struct job *job,
                                       struct json_out *o, bool *ret_changed);
MUST_CHECK enum err entity_call_heartbeat(struct op *op, struct tx *tx,
                                          const struct heartbeat_input *in, const struct job *job);
MUST_CHECK enum err entity_call_release(struct op *op, struct tx *tx,
                                        const struct heartbeat_input *in, struct job *job);
/* Its timer fired: the lease has ended, or the delay before the next attempt. */
MUST_CHECK enum err entity_call_due(struct tx *tx, struct job *job, struct problem *p);
/* A migration was asked for: a call that nobody is working on makes way for it, since there may be
 * nobody left who handles the old version. What it was about waits for the call after that.
 * *ret_migrating: a worker is migrating it right now, and nothing was changed. */
MUST_CHECK enum err entity_call_give_way(struct entity_txn *m, bool *ret_migrating);
/* A dead letter is tried again. */
MUST_CHECK enum err entity_call_revive(struct op *op, struct tx *tx, struct job *job);

/* The job for its readers; the object stays open, as render_job() leaves it. */
MUST_CHECK enum err entity_call_show(struct read_tx *tx, const struct job *job, struct problem *p,
                                     struct json_out *o);

#endif
