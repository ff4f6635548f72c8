/* What the worker actor keeps; the model of leases (leases.h) works on it. */
#ifndef PAWL_TESTS_SIM_WORKERS_H
#define PAWL_TESTS_SIM_WORKERS_H

#include "sim/jobs/leases.h"

/* Both newest first. */
struct job_list {
    struct seen_job *jobs;
    struct lease *leases;
};

struct job_list *workers_jobs(struct sim *w);

#endif
