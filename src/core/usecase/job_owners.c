/* The owners of jobs. */
#include "core/usecase/job_owners.h"

#include "core/entity/entity_call.h"
#include "core/usecase/run_jobs.h"

const struct job_owner_ops *job_owner_of(const struct job *job)
{
    return job->step == JOB_OF_ENTITY ? &ENTITY_CALLS : &RUN_JOBS;
}
