/* Advancing a run, as pure functions of its definition and its progress. */
#include "domain/workflow/advance.h"

/* --- who may begin --- */

static bool is_bad(enum step_status status)
{
    return status == STEP_IS_FAILED || status == STEP_IS_TIMED_OUT || status == STEP_IS_DENIED;
}

/* Its error goes on to another step, which it names. */
static bool went_another_way(const struct definition *def, const struct progress *p, size_t i)
{
    return is_bad(p->steps[i].status) && def->steps[i].on_error == ON_ERROR_STEP;
}

/* A step that others name in on_error waits until each of them is settled, and runs when one of
 * them has failed. */
enum readiness { NOT_YET, READY, CUT_OFF };

static enum readiness handler_is(const struct definition *def, const struct progress *p, size_t i)
{
    bool open = false;
    bool called = false;
    for (size_t x = 0; x < def->step_count; x++) {
        if (def->steps[x].on_error != ON_ERROR_STEP || def->steps[x].error_step != i)
            continue;
        called |= went_another_way(def, p, x);
        open |= !step_is_settled(p->steps[x].status);
    }
    if (open)
        return NOT_YET;
    return called ? READY : CUT_OFF;
}

static enum readiness needs_are(const struct definition *def, const struct progress *p, size_t i)
{
    bool cut = false;
    bool handler = def->steps[i].handles_errors;
    for (size_t n = 0; n < def->steps[i].need_count; n++) {
        size_t need = def->steps[i].needs[n];
        if (!step_is_settled(p->steps[need].status))
            return NOT_YET;
        bool mine = went_another_way(def, p, need) && def->steps[need].error_step == i;
        cut |= !mine && (p->steps[need].cut || went_another_way(def, p, need));
    }
    /* An error that leads here counts for more than a need that was cut off: somebody must see it.
     */
    if (handler)
        return handler_is(def, p, i);
    return cut ? CUT_OFF : READY;
}

/* --- next --- */

/* The other items of a map that has failed end before anything else is done, even while the run is
 * paused: their results would be those of a step that is settled. */
static struct next next_leftover(const struct progress *p)
{
    for (size_t i = 0; i < p->count; i++) {
        if (step_is_settled(p->steps[i].status) && p->steps[i].begun > p->steps[i].over)
            return (struct next){.kind = NEXT_STOP, .step = i};
    }
    return (struct next){.kind = NEXT_NOTHING};
}

static struct next next_step(const struct definition *def, const struct progress *p)
{
    for (size_t i = 0; i < def->step_count; i++) {
        const struct step_state *s = &p->steps[i];
        int64_t parallel = def->steps[i].max_parallel;
        int64_t window = parallel - (s->begun - s->over);
        /* Several at a time: reading the items again costs as much for one as for many. The first
         * ones are made in turns, and the last of those turns may be small. */
        bool worth_it = window >= MAX(parallel / 4, (int64_t)1) || (window > 0 && s->over == 0);
        if (s->status == STEP_IS_ACTIVE && s->begun < s->items && worth_it)
            return (struct next){
                .kind = NEXT_ITEMS, .step = i, .count = MIN(window, s->items - s->begun)};
        if (s->status != STEP_IS_WAITING)
            continue;
        enum readiness ready = needs_are(def, p, i);
        if (ready != NOT_YET)
            return (struct next){.kind = ready == READY ? NEXT_BEGIN : NEXT_SKIP, .step = i};
    }
    return (struct next){.kind = NEXT_NOTHING};
}

/* Something was done by it: by some items even of a map that did not succeed. */
static bool has_effect(const struct step_state *s)
{
    return s->status == STEP_IS_SUCCEEDED ||
           (s->is_map && step_is_settled(s->status) && s->over > s->failed);
}

/* The run stops: what is open ends, then what was done is undone, the last first. */
static struct next next_stop(const struct definition *def, const struct progress *p)
{
    struct next undo = {.kind = NEXT_NOTHING};
    for (size_t i = 0; i < def->step_count; i++) {
        const struct step_state *s = &p->steps[i];
        if (s->status == STEP_IS_ACTIVE)
            return (struct next){.kind = NEXT_STOP, .step = i};
        if (s->undo == UNDO_OPEN)
            return (struct next){.kind = NEXT_NOTHING};
    }
    for (size_t i = 0; i < def->step_count; i++) {
        const struct step_state *s = &p->steps[i];
        if (!has_effect(s) || !def->steps[i].has_undo || s->undo != UNDO_NONE)
            continue;
        if (undo.kind == NEXT_NOTHING || s->seq > p->steps[undo.step].seq)
            undo = (struct next){.kind = NEXT_UNDO, .step = i};
    }
    if (undo.kind == NEXT_UNDO)
        return undo;
    if (p->stop == STOP_TIMED_OUT)
        return (struct next){.kind = NEXT_RUN, .on = RUN_ON_TIME_OUT};
    bool denied = p->steps[p->cause].status == STEP_IS_DENIED;
    return (struct next){.kind = NEXT_RUN, .on = denied ? RUN_ON_DENY : RUN_ON_FAIL};
}

static bool is_working(const struct definition *def, const struct progress *p)
{
    for (size_t i = 0; i < def->step_count; i++) {
        const struct step_state *s = &p->steps[i];
        bool open = s->status == STEP_IS_ACTIVE && (s->begun == 0 || s->begun - s->over > s->asked);
        if ((open && !step_type_is(def->steps[i].type, STEP_ONLY_WAITS)) || s->undo == UNDO_OPEN)
            return true;
    }
    return false;
}

struct next advance_next(const struct definition *def, const struct progress *p,
                         enum run_status status)
{
    assert(p->count == def->step_count);
    if (status == RUN_QUEUED || run_has_ended(status))
        return (struct next){.kind = NEXT_NOTHING};
    struct next next = next_leftover(p);
    if (next.kind != NEXT_NOTHING || status == RUN_PAUSED)
        return next;
    if (status == RUN_PENDING)
        return (struct next){.kind = NEXT_RUN, .on = RUN_ON_START};
    next = p->stop != STOP_NO ? next_stop(def, p) : next_step(def, p);
    if (next.kind == NEXT_NOTHING && p->stop == STOP_NO && p->settled == (int64_t)def->step_count)
        next = (struct next){.kind = NEXT_RUN, .on = RUN_ON_SUCCEED};
    bool ends = next.kind == NEXT_RUN;
    bool working = is_working(def, p);
    if (status == RUN_WAITING && (ends || working))
        return (struct next){.kind = NEXT_RUN, .on = RUN_ON_WAKE};
    if (status == RUN_RUNNING && next.kind == NEXT_NOTHING && !working)
        return (struct next){.kind = NEXT_RUN, .on = RUN_ON_WAIT};
    return next;
}

/* --- what happened --- */

static void settle(struct progress *p, size_t step, enum step_status as)
{
    assert(step_is_settled(as) && !step_is_settled(p->steps[step].status));
    p->steps[step].status = as;
    p->steps[step].asked = 0; /* nobody need answer any more */
    p->steps[step].seq = ++p->order;
    p->settled++;
}

static bool stops_run(const struct definition *def, const struct progress *p, size_t step)
{
    const struct step_def *d = &def->steps[step];
    if (d->on_error == ON_ERROR_CONTINUE)
        return false;
    return d->on_error == ON_ERROR_FAIL || p->steps[d->error_step].status != STEP_IS_WAITING;
}

static void settle_badly(const struct definition *def, struct progress *p, size_t step,
                         enum step_status as)
{
    settle(p, step, as);
    if (p->stop == STOP_NO && stops_run(def, p, step)) {
        p->stop = STOP_FAILED;
        p->cause = (int64_t)step;
    }
}

void advance_begin(struct progress *p, size_t step, int64_t items)
{
    struct step_state *s = &p->steps[step];
    assert(s->status == STEP_IS_WAITING);
    s->status = STEP_IS_ACTIVE;
    s->is_map = items >= 0;
    s->items = s->is_map ? items : 1;
    s->begun = s->over = s->failed = 0;
    s->first = s->items > 0 ? p->jobs + 1 : 0;
    p->jobs += s->items;
    if (s->items == 0)
        settle(p, step, STEP_IS_SUCCEEDED);
}

void advance_items_begun(struct progress *p, size_t step, int64_t count)
{
    struct step_state *s = &p->steps[step];
    assert(s->status == STEP_IS_ACTIVE && s->begun + count <= s->items);
    s->begun += count;
}

void advance_asked(struct progress *p, size_t step)
{
    struct step_state *s = &p->steps[step];
    assert(s->status == STEP_IS_ACTIVE && s->asked < s->begun - s->over);
    s->asked++;
}

void advance_answered(struct progress *p, size_t step)
{
    struct step_state *s = &p->steps[step];
    assert(s->status == STEP_IS_ACTIVE && s->asked > 0);
    s->asked--;
}

void advance_skip(struct progress *p, size_t step, bool cut)
{
    assert(p->steps[step].status == STEP_IS_WAITING);
    p->steps[step].cut = cut;
    settle(p, step, STEP_IS_SKIPPED);
}

bool advance_expects(const struct progress *p, size_t step, bool undo)
{
    if (step >= p->count)
        return false;
    const struct step_state *s = &p->steps[step];
    if (undo)
        return s->undo == UNDO_OPEN;
    return s->status == STEP_IS_ACTIVE && s->over < s->begun && s->asked <= s->begun - s->over - 1;
}

void advance_job_over(const struct definition *def, struct progress *p, size_t step,
                      enum step_status as)
{
    struct step_state *s = &p->steps[step];
    assert(s->status == STEP_IS_ACTIVE && s->over < s->begun);
    s->over++;
    assert(s->asked <= s->begun - s->over);
    s->failed += as != STEP_IS_SUCCEEDED;
    bool goes_on = s->is_map && def->steps[step].on_error == ON_ERROR_CONTINUE;
    if (as != STEP_IS_SUCCEEDED && !goes_on)
        settle_badly(def, p, step, as);
    else if (s->over == s->items)
        settle(p, step, STEP_IS_SUCCEEDED);
}

void advance_stopped(struct progress *p, size_t step)
{
    struct step_state *s = &p->steps[step];
    if (s->is_map)
        s->failed += s->begun - s->over; /* those did not succeed either */
    s->over = s->begun;
    if (s->status == STEP_IS_ACTIVE)
        settle(p, step, STEP_IS_CANCELLED); /* as its jobs are */
}

void advance_undo_begun(struct progress *p, size_t step)
{
    struct step_state *s = &p->steps[step];
    assert(has_effect(s) && s->undo == UNDO_NONE);
    s->undo = UNDO_OPEN;
    s->undo_job = ++p->jobs;
}

void advance_undo_over(struct progress *p, size_t step, bool done)
{
    assert(p->steps[step].undo == UNDO_OPEN);
    p->steps[step].undo = done ? UNDO_DONE : UNDO_FAILED;
}

void advance_timed_out(struct progress *p)
{
    if (p->stop == STOP_NO)
        p->stop = STOP_TIMED_OUT;
}

bool advance_may_retry(const struct definition *def, const struct progress *p, size_t step)
{
    const struct step_state *s = &p->steps[step];
    if (!step_is_settled(s->status))
        return false;
    /* An error that the run went on with has been dealt with. */
    bool dealt_with = is_bad(s->status) && def->steps[step].on_error != ON_ERROR_FAIL &&
                      !(p->stop == STOP_FAILED && p->cause == (int64_t)step);
    bool stands = s->status == STEP_IS_SUCCEEDED || s->status == STEP_IS_SKIPPED || dealt_with;
    return s->undo != UNDO_NONE || !stands;
}

void advance_mark_undone(const struct definition *def, const struct progress *p, bool *ret)
{
    for (size_t i = 0; i < def->step_count; i++)
        ret[i] = p->steps[i].undo != UNDO_NONE;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < def->step_count; i++) {
            bool behind = ret[i];
            for (size_t n = 0; n < def->steps[i].need_count; n++)
                behind |= ret[def->steps[i].needs[n]];
            for (size_t x = 0; x < def->step_count; x++) /* its error may lead there this time */
                behind |= ret[x] && def->steps[x].on_error == ON_ERROR_STEP &&
                          def->steps[x].error_step == i;
            more |= behind && !ret[i];
            ret[i] = behind;
        }
    }
}

void advance_again(struct progress *p, size_t step)
{
    assert(step_is_settled(p->steps[step].status));
    p->settled--;
    p->steps[step] = (struct step_state){.status = STEP_IS_WAITING};
}

void advance_revive(struct progress *p, size_t step, int64_t revived)
{
    struct step_state *s = &p->steps[step];
    if (revived == 0) {
        advance_again(p, step);
        return;
    }
    assert(step_is_settled(s->status) && revived <= s->begun);
    p->settled--;
    s->status = STEP_IS_ACTIVE;
    s->seq = 0;
    s->failed = 0;
    s->over = s->begun - revived;
}

void advance_unstop(struct progress *p)
{
    p->stop = STOP_NO;
    p->cause = 0;
}

int64_t advance_item(const struct step_state *s, int64_t ordinal)
{
    return s->first > 0 && ordinal >= s->first && ordinal < s->first + s->items ? ordinal - s->first
                                                                                : -1;
}
