/* What came of a run: its steps, its children and its timeline against what workers and receivers
 * have done. Asks the server. */
#ifndef PAWL_TESTS_SIM_OUTCOMES_H
#define PAWL_TESTS_SIM_OUTCOMES_H

#include "sim/runs.h"

/* A run that goes on. */
void outcome_glance(struct sim *w, const struct seen_run *r);
/* A run that is over, when nothing moves any more. */
void outcome_check(struct sim *w, const struct seen_run *r);

/* The timeline alone: nothing twice, nothing after its end, attempts within bounds, compensation
 * once and in reverse. `definition`: NULL when it is not known. */
void timeline_check(struct sim *w, const struct seen_run *r, const json_t *run,
                    const json_t *definition, const json_t *events);

#endif
