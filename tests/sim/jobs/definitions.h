/* Workflow definitions made by lot: every step type, option and combination of them. */
#ifndef PAWL_TESTS_SIM_DEFINITIONS_H
#define PAWL_TESTS_SIM_DEFINITIONS_H

#include "sim/sim.h"

enum { CHILD_WORKFLOWS = 2 };

/* A definition whose runs can end. `depth`: of children below it that it may start, named child0 …
 * child<depth - 1>; `limited`: it may limit its runs. Written to `out`. */
void definition_make(struct sim *w, struct buf *out, int depth, bool limited);

/* The step of that name; NULL: none. */
const json_t *definition_step(const json_t *definition, const char *name);
/* How often a job of this step may be handed out, and how often it may fail. */
int64_t step_leases_max(const json_t *step);
int64_t step_attempts_max(const json_t *step);
/* Of the rule with this key ("" for the one without); INT64_MAX: there is none. */
int64_t definition_limit(const json_t *definition, const char *key);

#endif
