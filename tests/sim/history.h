/* One history: the steps of a seed, or some of them. */
#ifndef PAWL_TESTS_SIM_HISTORY_H
#define PAWL_TESTS_SIM_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

enum { STEPS_MAX = 1000 };

struct plan {
    uint64_t seed;
    int count;            /* of steps; 0: as many as the seed says */
    int steps[STEPS_MAX]; /* with a count: these, in rising order */
};

/* How many steps a seed has. */
int history_steps(uint64_t seed);
/* Seeds of one variant begin with the same warm server. */
enum { HISTORY_VARIANTS = 2 };
int history_variant(uint64_t seed);
/* Makes the process ready to run histories of a variant, each in a child. */
void history_warm(int variant, const char *folder);
/* Runs it to its end, in a child of a process that is warm. A broken promise ends the process by
 * sim_fail(). */
void history_run(const struct plan *plan, bool tells);

#endif
