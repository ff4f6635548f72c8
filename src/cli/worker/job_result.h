/* The result of a command that worked on a job, as the body of /complete or /fail. */
#ifndef PAWL_CLI_WORKER_JOB_RESULT_H
#define PAWL_CLI_WORKER_JOB_RESULT_H

#include "base/json_tree.h"
#include "cli/worker/job_process.h"

struct job_result {
    struct buf body;
    bool failed;   /* the body is for /fail */
    char code[32]; /* of the failure; "" when the job is completed */
};

void job_result_init(struct job_result *r);
void job_result_release(struct job_result *r);
/* Forgets the result of the job before. */
void job_result_clear(struct job_result *r);

/* Fills r from the exit status and the output of a command that has ended. */
void job_result_make(struct job_result *r, const json_t *job, struct job_process *process);
/* Replaces the result by a failure: the server did not accept the output. */
void job_result_refuse_output(struct job_result *r, const json_t *job, struct str reason);

/* The job is a call of an entity's handler, not a step of a run. */
bool job_is_of_entity(const json_t *job);

#endif
