/* Jobs of runs, as core/txn/job_owner.h wants them. */
#ifndef PAWL_CORE_USECASE_RUN_JOBS_H
#define PAWL_CORE_USECASE_RUN_JOBS_H

#include "core/txn/job_owner.h"

extern const struct job_owner_ops RUN_JOBS;

#endif
