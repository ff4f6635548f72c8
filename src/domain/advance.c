/* Advancing a run, as a pure function of its definition and its steps. */
#include "domain/advance.h"

static bool may_begin(const struct definition *def, const struct step_progress *steps, size_t i)
{
    if (steps[i].begun)
        return false;
    for (size_t n = 0; n < def->steps[i].need_count; n++) {
        size_t need = def->steps[i].needs[n];
        if (!steps[need].begun || steps[need].state != JOB_SUCCEEDED)
            return false;
    }
    return true;
}

static void add_event(struct advance *a, enum run_status *status, enum run_event on)
{
    struct run_change change;
    enum err e = run_decide(*status, on, &change);
    assert(e == ERR_OK && a->event_count < ARRAY_LEN(a->events));
    a->events[a->event_count++] = on;
    *status = change.to;
}

void run_advance(const struct definition *def, const struct step_progress *steps,
                 enum run_status status, size_t *room, struct advance *ret)
{
    assert(!run_is_over(status) && run_holds_slot(status));
    *ret = (struct advance){.begin = room};
    size_t succeeded = 0;
    bool failed = false;
    bool working = false; /* something other than a sleep is open or about to be */
    for (size_t i = 0; i < def->step_count; i++) {
        if (!steps[i].begun)
            continue;
        succeeded += steps[i].state == JOB_SUCCEEDED;
        failed |= job_is_over(steps[i].state) && steps[i].state != JOB_SUCCEEDED;
        working |= !job_is_over(steps[i].state) && steps[i].state != JOB_SCHEDULED;
    }
    for (size_t i = 0; i < def->step_count && !failed; i++) {
        if (!may_begin(def, steps, i))
            continue;
        room[ret->begin_count++] = i;
        working |= def->steps[i].type != STEP_SLEEP;
    }
    bool settled = failed || succeeded == def->step_count;
    if (status == RUN_PENDING)
        add_event(ret, &status, RUN_ON_START);
    if (status == RUN_WAITING && (settled || working))
        add_event(ret, &status, RUN_ON_WAKE);
    if (settled)
        add_event(ret, &status, failed ? RUN_ON_FAIL : RUN_ON_SUCCEED);
    else if (status == RUN_RUNNING && !working)
        add_event(ret, &status, RUN_ON_WAIT);
}
