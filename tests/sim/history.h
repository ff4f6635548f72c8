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
    /* Not 0: the power fails at this change of the first server's files, and again by chance while
     * it recovers; no other fault of disks and processes happens. */
    uint64_t cut_at;
};

/* How many steps a seed has. */
int history_steps(uint64_t seed);
/* Seeds of one variant begin with the same warm server. */
enum { HISTORY_VARIANTS = 2 };
int history_variant(uint64_t seed);
/* Makes the process ready to run histories of a variant, each in a child. */
void history_warm(int variant, const char *folder);
/* Runs it to its end, in a child of a process that is warm. A broken promise ends the process by
 * sim_fail(). False when the power did not fail as the plan says: there are fewer changes. */
bool history_run(const struct plan *plan, bool tells);

#endif
