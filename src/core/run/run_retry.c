/* A failed run tries again. */
#include "core/run/run_retry.h"

#include "core/run/approval_txn.h"
#include "core/run/job_txn.h"
#include "core/run/run_advance.h"
#include "core/run/run_control.h"
#include "core/run/step_ops.h"

/* Jobs of a step that were handed out or could have been, and those that ended before that: by an
 * expression, or without an approval. */
struct step_offers {
    const struct run_txn *m;
    int64_t made;
    int64_t ended_before;
    enum err err;
};

static bool was_let_go(struct step_offers *o, const struct job *job)
{
    bool granted = false;
    if (!job_step(o->m->def, job)->asks || o->err != ERR_OK)
        return true;
    o->err = approval_of_job(o->m, job, &granted);
    return granted;
}

static void count_offer(void *ctx, const struct job *job)
{
    struct step_offers *o = ctx;
    bool offered = job->lease_epoch > 0 || (job->state != JOB_FAILED && was_let_go(o, job));
    o->made += offered;
    o->ended_before += !offered;
}

/* None for a step whose jobs are not tried again under their own ids. */
static enum err count_offers(const struct run_txn *m, size_t step, struct step_offers *ret)
{
    const struct step_state *s = &m->progress.steps[step];
    enum step_type type = m->def->steps[step].type;
    if (s->first == 0 || s->undo != UNDO_NONE || !step_type_is(type, STEP_QUEUED))
        return ERR_OK;
    enum err e = jobs_range(m->tx->db, m->run.num, s->first, s->first + s->begun, count_offer, ret);
    return e == ERR_OK ? ret->err : e;
}

enum err run_txn_can_retry(const struct run_txn *m, bool *ret)
{
    enum err e = ERR_OK;
    *ret = true;
    for (size_t i = 0; i < m->progress.count && e == ERR_OK; i++) {
        struct step_offers offers = {.m = m};
        if (!advance_may_retry(m->def, &m->progress, i))
            continue;
        e = count_offers(m, i, &offers);
        *ret &= e == ERR_OK && (offers.made == 0 || offers.ended_before == 0);
    }
    return e;
}

/* Jobs of tasks and calls run again under their own ids, so that receivers can recognize them;
 * steps of other kinds start again. */
static enum err revive_step(struct run_txn *m, size_t step)
{
    struct step_state *s = &m->progress.steps[step];
    struct step_offers offers = {.m = m};
    enum err e = count_offers(m, step, &offers);
    if (e != ERR_OK)
        return e;
    if (offers.made == 0) { /* what could not be evaluated is evaluated again, and asked again */
        const struct step_waits *waits = step_waits_of_type(m->def->steps[step].type);
        if (waits->dropped != NULL)
            e = waits->dropped(m, s->first, s->first + s->begun);
        if (e == ERR_OK)
            advance_again(&m->progress, step);
        return e;
    }
    int64_t revived = 0;
    for (int64_t ordinal = s->first; ordinal < s->first + s->begun && e == ERR_OK; ordinal++) {
        struct arena_mark mark = arena_mark(&m->tx->arena);
        struct job job;
        bool found = false;
        enum job_state ignored;
        e = jobs_find_at(m->tx->db, m->run.num, ordinal, &m->tx->arena, &found, &job);
        if (e != ERR_OK || !found || job_decide(job.state, JOB_ON_REVIVE, &ignored) != ERR_OK)
            continue;
        e = job_change(m, &job, JOB_ON_REVIVE);
        if (e != ERR_OK)
            return e;
        revived++;
        arena_back_to(&m->tx->arena, mark);
    }
    if (e == ERR_OK)
        advance_revive(&m->progress, step, revived);
    return e;
}

enum err run_txn_retry(struct run_txn *m, struct str actor)
{
    struct str note = run_txn_control_note(m, actor, STR_NONE);
    if (note.ptr == NULL)
        return ERR_NO_MEMORY;
    m->run.error = STR_NONE;
    m->run.finished_at = -1;
    enum err e = run_txn_apply(m, RUN_ON_RETRY);
    if (e == ERR_OK)
        e = run_txn_add_event(m, EVENT_RUN_RETRIED, note);
    if (e != ERR_OK)
        return e;
    bool *undone = arena_alloc(&m->tx->arena, m->progress.count * sizeof(*undone));
    if (undone == NULL)
        return ERR_NO_MEMORY;
    advance_mark_undone(m->def, &m->progress, undone);
    for (size_t i = 0; i < m->progress.count && e == ERR_OK; i++) {
        if (undone[i] && step_is_settled(m->progress.steps[i].status))
            advance_again(&m->progress, i);
        else if (advance_may_retry(m->def, &m->progress, i))
            e = revive_step(m, i);
    }
    if (e != ERR_OK)
        return e;
    advance_unstop(&m->progress);
    e = run_txn_set_deadline(m);
    return e == ERR_OK ? run_txn_advance(m) : e;
}
