/* A job as its readers see it, of a run or of an entity, with its attempts. */
#ifndef PAWL_CORE_USECASE_JOB_VIEW_H
#define PAWL_CORE_USECASE_JOB_VIEW_H

#include "core/txn/tx.h"
#include "store/run/jobs.h"

/* One JSON object. */
MUST_CHECK enum err job_view(struct read_tx *tx, const struct job *job, struct problem *p,
                             struct json_out *o);

#endif
