/* The owners of jobs. */
#include "core/usecase/job_owners.h"

#include "core/entity/entity_call.h"
#include "core/txn/attempts.h"
#include "core/usecase/run_jobs.h"

const struct job_owner_ops *job_owner_of(const struct job *job)
{
    return job->step == JOB_OF_ENTITY ? &ENTITY_CALLS : &RUN_JOBS;
}

enum err job_view(struct read_tx *tx, const struct job *job, struct problem *p, struct json_out *o)
{
    enum err e = job_owner_of(job)->show(tx, job, p, o);
    if (e != ERR_OK)
        return e;
    e = attempts_show(tx, job, o);
    json_close(o, '}');
    return e == ERR_OK ? ERR_OK : problem_set(p, e, "Cannot read the job's attempts");
}
