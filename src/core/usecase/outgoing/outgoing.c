/* Work that leaves the server as an HTTP call. */
#include "core/usecase/outgoing/outgoing.h"

#include <stdlib.h>

void outgoing_job_free(struct outgoing_job *job)
{
    if (job == NULL)
        return;
    if (job->release != NULL)
        job->release(job);
    op_release(&job->op);
    free(job);
}

void outgoing_jobs_free(struct outgoing_job **first)
{
    while (*first != NULL) {
        struct outgoing_job *job = *first;
        *first = job->next;
        outgoing_job_free(job);
    }
}
