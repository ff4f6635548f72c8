/* Drives the run of a definition from its beginning to its end, every step succeeding, and checks
 * on the way what a run promises. */
#ifndef PAWL_FUZZ_DRIVE_H
#define PAWL_FUZZ_DRIVE_H

#include "domain/advance.h"
#include "fuzz.h"

struct drive {
    const struct definition *def;
    struct step_progress steps[STEPS_MAX];
    size_t room[STEPS_MAX];
    enum run_status status;
    size_t begun;
    size_t ends;
    uint64_t chance; /* decides which of the open steps is done next */
};

static inline void drive_begin(struct drive *d, size_t step)
{
    assert(step < d->def->step_count && !d->steps[step].begun);
    const struct step_def *s = &d->def->steps[step];
    for (size_t n = 0; n < s->need_count; n++) {
        assert(s->needs[n] < d->def->step_count && s->needs[n] != step);
        assert(d->steps[s->needs[n]].begun && d->steps[s->needs[n]].state == JOB_SUCCEEDED);
    }
    d->steps[step].begun = true;
    d->steps[step].state = s->type == STEP_SLEEP ? JOB_SCHEDULED : JOB_PENDING;
    d->begun++;
}

/* A running run has work, a waiting one only sleeps, one that is over has nothing left. */
static inline void drive_check_status(const struct drive *d)
{
    size_t asleep = 0;
    size_t working = 0;
    for (size_t i = 0; i < d->def->step_count; i++) {
        if (d->steps[i].begun && !job_is_over(d->steps[i].state))
            *(d->steps[i].state == JOB_SCHEDULED ? &asleep : &working) += 1;
    }
    assert(d->status == RUN_RUNNING ? working > 0 : working == 0);
    assert(d->status != RUN_WAITING || asleep > 0);
    assert(!run_is_over(d->status) || asleep == 0);
}

static inline void drive_advance(struct drive *d)
{
    struct advance next;
    run_advance(d->def, d->steps, d->status, d->room, &next);
    for (size_t i = 0; i < next.begin_count; i++)
        drive_begin(d, next.begin[i]);
    for (size_t i = 0; i < next.event_count; i++) {
        struct run_change change;
        enum err e = run_decide(d->status, next.events[i], &change);
        assert(e == ERR_OK);
        d->status = change.to;
        d->ends += (change.effects & FX_FINISH) != 0;
    }
    drive_check_status(d);
}

/* An open step exists as long as the run is not over: otherwise it would hang for ever. */
static inline size_t drive_pick_open(struct drive *d)
{
    d->chance = d->chance * 6364136223846793005u + 1442695040888963407u;
    size_t from = (size_t)(d->chance >> 33);
    for (size_t i = 0; i < d->def->step_count; i++) {
        size_t at = (from + i) % d->def->step_count;
        if (d->steps[at].begun && !job_is_over(d->steps[at].state))
            return at;
    }
    assert(false && "the run is open and nothing of it is");
    return 0;
}

/* Every step begins once, after its needs: that also shows that the needs have no cycle. */
static inline void drive_to_end(const struct definition *def, uint64_t chance)
{
    assert(def->step_count > 0 && def->step_count <= STEPS_MAX);
    struct drive d = {.def = def, .status = RUN_PENDING, .chance = chance};
    drive_advance(&d);
    while (!run_is_over(d.status)) {
        d.steps[drive_pick_open(&d)].state = JOB_SUCCEEDED;
        drive_advance(&d);
    }
    assert(d.status == RUN_SUCCEEDED && d.ends == 1 && d.begun == def->step_count);
}

#endif
