/* The owners of jobs: which table of functions is a job's, and a job as readers see it. */
#ifndef PAWL_CORE_USECASE_JOB_OWNERS_H
#define PAWL_CORE_USECASE_JOB_OWNERS_H

#include "core/txn/job_owner.h"

const struct job_owner_ops *job_owner_of(const struct job *job);

/* Writes a job as its readers see it, with its attempts: one JSON object. */
MUST_CHECK enum err job_view(struct read_tx *tx, const struct job *job, struct problem *p,
                             struct json_out *o);

#endif
