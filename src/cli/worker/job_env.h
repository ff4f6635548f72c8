/* The environment of a command that works on a job: ours without our keys, and the job's
 * variables. */
#ifndef PAWL_CLI_WORKER_JOB_ENV_H
#define PAWL_CLI_WORKER_JOB_ENV_H

#include "base/json_tree.h"

struct job_env {
    struct buf text;
    char **vars; /* for exec; NULL: out of memory */
};

/* `job` as the server sent it. Call job_env_release in any case. */
void job_env_make(struct job_env *e, const json_t *job, struct str url, bool pass_api_key);
void job_env_release(struct job_env *e);

#endif
