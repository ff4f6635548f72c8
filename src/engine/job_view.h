/* A job as its readers see it, of a run or of an entity, with its attempts. */
#ifndef PAWL_ENGINE_JOB_VIEW_H
#define PAWL_ENGINE_JOB_VIEW_H

#include "engine/tx.h"
#include "store/jobs.h"

/* One JSON object. */
MUST_CHECK enum err job_view(struct tx *tx, const struct job *job, struct problem *p,
                             struct json_out *o);

#endif
