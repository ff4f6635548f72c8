/* Drives the run of a definition from its beginning to its end, by what advance_next() says, and
 * checks on the way what a run promises. */
#ifndef PAWL_FUZZ_DRIVE_H
#define PAWL_FUZZ_DRIVE_H

#include "domain/workflow/advance.h"
#include "fuzz.h"

struct drive {
    const struct definition *def;
    struct arena arena;
    struct progress p;
    enum run_status status;
    size_t ends;
    uint64_t chance;
    uint64_t fails_one_in; /* 0: every job succeeds */
};

static inline uint64_t drive_chance(struct drive *d, uint64_t bound)
{
    d->chance = d->chance * 6364136223846793005u + 1442695040888963407u;
    return (d->chance >> 33) % bound;
}

static inline void drive_begin(struct drive *d, size_t step)
{
    const struct step_def *s = &d->def->steps[step];
    assert(d->p.steps[step].status == STEP_IS_WAITING && d->p.stop == STOP_NO);
    for (size_t n = 0; n < s->need_count; n++) {
        assert(s->needs[n] < d->def->step_count && s->needs[n] != step);
        assert(step_is_settled(d->p.steps[s->needs[n]].status));
    }
    advance_begin(&d->p, step, s->for_each != NULL ? (int64_t)drive_chance(d, 4) : -1);
}

static inline void drive_do(struct drive *d, const struct next *next)
{
    assert(next->step < d->def->step_count);
    struct run_change change;
    enum err e;
    switch (next->kind) {
    case NEXT_NOTHING:
        break;
    case NEXT_BEGIN:
        drive_begin(d, next->step);
        break;
    case NEXT_ITEMS:
        assert(next->count > 0);
        advance_items_begun(&d->p, next->step, next->count);
        break;
    case NEXT_SKIP:
        advance_skip(&d->p, next->step, true);
        break;
    case NEXT_STOP:
        advance_stopped(&d->p, next->step);
        break;
    case NEXT_UNDO:
        advance_undo_begun(&d->p, next->step);
        break;
    case NEXT_RUN:
        e = run_decide(d->status, next->on, &change);
        assert(e == ERR_OK);
        d->status = change.to;
        d->ends += (change.effects & FX_FINISH) != 0;
        break;
    }
}

static inline void drive_go(struct drive *d)
{
    /* Each step begins, is stopped and undone once at most; a few of a map's items come at a time.
     */
    for (size_t turns = 0;; turns++) {
        assert(turns < 16 * d->def->step_count + 16);
        struct next next = advance_next(d->def, &d->p, d->status);
        if (next.kind == NEXT_NOTHING)
            return;
        drive_do(d, &next);
    }
}

/* Something is open as long as the run is not over: otherwise it would hang for ever. */
static inline void drive_event(struct drive *d)
{
    size_t from = (size_t)drive_chance(d, d->def->step_count);
    bool fails = d->fails_one_in > 0 && drive_chance(d, d->fails_one_in) == 0;
    for (size_t i = 0; i < d->def->step_count; i++) {
        size_t at = (from + i) % d->def->step_count;
        const struct step_state *s = &d->p.steps[at];
        if (s->undo == UNDO_OPEN) {
            advance_undo_over(&d->p, at, !fails);
            return;
        }
        if (s->status == STEP_IS_ACTIVE && s->begun > s->over) {
            advance_job_over(d->def, &d->p, at, fails ? STEP_IS_FAILED : STEP_IS_SUCCEEDED);
            return;
        }
    }
    assert(false && "the run is open and nothing of it is");
}

/* The definition's run with these chances; returns how it ended. */
static inline enum run_status drive_to_end(const struct definition *def, uint64_t chance,
                                           uint64_t fails_one_in)
{
    assert(def->step_count > 0 && def->step_count <= STEPS_MAX);
    struct drive d = {
        .def = def, .status = RUN_PENDING, .chance = chance, .fails_one_in = fails_one_in};
    arena_init(&d.arena, MIB);
    bool ok = progress_init(&d.p, def->step_count, &d.arena);
    assert(ok);
    drive_go(&d);
    while (!run_has_ended(d.status)) {
        drive_event(&d);
        drive_go(&d);
    }
    assert(d.ends == 1);
    for (size_t i = 0; i < def->step_count; i++) {
        const struct step_state *s = &d.p.steps[i];
        assert(s->over == s->begun && s->undo != UNDO_OPEN);
        assert(step_is_settled(s->status) || d.p.stop != STOP_NO);
        assert(fails_one_in > 0 || s->status == STEP_IS_SUCCEEDED || s->cut);
        assert(fails_one_in > 0 || !def->steps[i].handles_errors || s->cut);
    }
    arena_release(&d.arena);
    assert(fails_one_in > 0 || d.status == RUN_SUCCEEDED);
    return d.status;
}

#endif
