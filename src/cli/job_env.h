/* What a command that works on a job finds in its environment: ours without our keys, and the job's
 * own. */
#ifndef PAWL_CLI_JOB_ENV_H
#define PAWL_CLI_JOB_ENV_H

#include "base/json.h"

struct job_env {
    struct buf text;
    char **vars; /* for exec; NULL: no memory */
};

/* job as the server hands it out. job_env_release is due in any case. */
void job_env_make(struct job_env *e, const json_t *job, struct str url, bool pass_api_key);
void job_env_release(struct job_env *e);

#endif
