/* Advancing a run: from its definition and how far each step is, to what happens next. Pure. */
#ifndef PAWL_DOMAIN_ADVANCE_H
#define PAWL_DOMAIN_ADVANCE_H

#include "domain/definition.h"
#include "domain/job.h"
#include "domain/run.h"

/* One per step of the definition: the state of its job, or "none yet". */
struct step_progress {
    bool begun;
    enum job_state state;
};

struct advance {
    /* Steps to begin now, in the order written. Points into the array given to run_advance. */
    const size_t *begin;
    size_t begin_count;
    /* How the run moves on, in order: at most a WAKE or START before the one that settles it. */
    enum run_event events[3];
    size_t event_count;
};

/* `room` has space for step_count indexes. The run is not over. A failed step fails the run; a run
 * whose steps have all succeeded succeeds; one in which only sleeping steps are open waits. */
void run_advance(const struct definition *def, const struct step_progress *steps,
                 enum run_status status, size_t *room, struct advance *ret);

#endif
