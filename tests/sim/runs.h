/* What the model knows about runs, for every actor that meets them. */
#ifndef PAWL_TESTS_SIM_RUNS_H
#define PAWL_TESTS_SIM_RUNS_H

#include "sim/actions.h"

enum {
    RUN_ID_LEN = 36,
    RUNS_WORKFLOWS = 3, /* "w0" … of every tenant */
};

/* A run that somebody has seen. */
struct seen_run {
    char id[RUN_ID_LEN + 1];
    int place;
    int tenant;
    int64_t version; /* the highest that was seen */
    int64_t seen_at; /* by sim.clock, when that answer came */
    char status[12];
    char workflow[16];
    int64_t priority;
    int64_t moved;     /* by sim.clock: somebody last asked to resume or retry it; 0: nobody did */
    int64_t said_over; /* by sim.clock: a refusal said that it is over; 0: none did */
    bool over;
    bool removed; /* by retention: it may be gone */
    struct seen_run *next;
};

/* A limit of a tenant as the operator has set it; -1: none. */
int64_t runs_limit(struct sim *w, int place, int tenant);
/* A request that may bring this limit is on its way (-1: none, or nobody knows which). False while
 * another one is: which of two comes last would decide. */
MUST_CHECK bool runs_limit_changes(struct sim *w, int place, int tenant, int64_t limit);
/* It was answered, and this limit is in force. */
void runs_limit_is(struct sim *w, int place, int tenant, int64_t limit);
/* From now on runs of the tenant may disappear some time after their end. */
void runs_may_be_removed(struct sim *w, int place, int tenant);
void tenant_name(char out[static 8], int tenant);

/* An answer shows this run: it must not be older than what was seen before the question. NULL when
 * the object is no run. */
struct seen_run *runs_observe(struct sim *w, const struct call *c, const json_t *run);
/* NULL: nobody has seen it. */
struct seen_run *seen_run_of(struct sim *w, const char *id);
/* All of them, newest first. */
struct seen_run *runs_first(struct sim *w);
/* One of those that fit, by lot; NULL: none does. `over`: 0 no, 1 yes, -1 any. */
struct seen_run *runs_any(struct sim *w, int over);
bool run_status_is_over(const char *status);

#endif
