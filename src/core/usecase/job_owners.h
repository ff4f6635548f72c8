/* The owners of jobs: which table of functions is a job's. */
#ifndef PAWL_CORE_USECASE_JOB_OWNERS_H
#define PAWL_CORE_USECASE_JOB_OWNERS_H

#include "core/txn/job_owner.h"

const struct job_owner_ops *job_owner_of(const struct job *job);

#endif
