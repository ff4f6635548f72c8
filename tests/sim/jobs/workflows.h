/* Workflows made by lot, and what was acknowledged about them. */
#ifndef PAWL_TESTS_SIM_WORKFLOWS_H
#define PAWL_TESTS_SIM_WORKFLOWS_H

#include "sim/jobs/definitions.h"
#include "sim/runs.h"

enum { VERSIONS_MAX = 24, LIMIT_KEYS = 4, WAITING_MAX = 48 };

/* A queued run as the last audit saw it. */
struct waiting_run {
    char id[RUN_ID_LEN + 1];
    int64_t priority, version, key;
};

/* A workflow of one tenant, with all versions. */
struct made_workflow {
    char id[12];
    int place, tenant;
    int depth;                      /* of the children below it */
    bool is_child;                  /* only started by other runs */
    json_t *versions[VERSIONS_MAX]; /* by number, as acknowledged */
    int64_t newest;                 /* 0: none is acknowledged */
    json_t *pending;                /* under way; NULL: none is */
    bool busy;                      /* a change is under way */
    bool archived;
    int64_t changed;                         /* by sim.clock: the last acknowledged change */
    int64_t allowed[2][LIMIT_KEYS];          /* more than the limit while runs from before end */
    struct waiting_run waiting[WAITING_MAX]; /* oldest last */
    int waiting_count;
};

/* The runs of one workflow under its limits, and its queue: asks the server. */
void limits_audit(struct sim *w, struct made_workflow *m);
/* Another version is acknowledged: what was admitted before may go on. */
void limits_changed(struct made_workflow *m, const json_t *before);

/* That version's definition; NULL: it is not one of these, or not acknowledged. */
const json_t *workflows_definition(struct sim *w, const struct seen_run *r, const json_t *run);
/* How often a receiver has answered 200 to this job's calls with this number, which is what the
 * step's output must show. */
bool steps_answered(struct sim *w, const char *job_id, int64_t number);

#endif
