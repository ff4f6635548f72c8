/* Advancing a run: the door through which its status changes, and the loop. */
#include "core/run/run_advance.h"

#include "base/limits.h"
#include "core/run/job_txn.h"
#include "core/run/run_trace.h"
#include "core/run/run_values.h"
#include "core/run/step_begin.h"
#include "core/run/step_ops.h"
#include "core/run/suspension.h"
#include "core/txn/cpu_shares.h"

enum { NEXTS_MAX = 100 * 1000 }; /* more in one turn is a bug, not a workflow */

/* --- jobs of the run, together --- */

typedef enum err open_job_fn(struct run_txn *m, struct job *job, enum job_event on);

/* Does it to every open job with an ordinal from … to - 1. One at a time is in memory: there may be
 * thousands, each with a large input. */
static enum err each_open_job(struct run_txn *m, int64_t from, int64_t to, open_job_fn *fn,
                              enum job_event on)
{
    struct arena *arena = &m->tx->arena;
    bool found = true;
    enum err e = ERR_OK;
    while (e == ERR_OK && found) {
        struct arena_mark mark = arena_mark(arena);
        struct job job;
        e = jobs_next_open(m->tx->db, m->run.num, from, to, arena, &found, &job);
        if (e == ERR_OK && found) {
            from = job.ordinal + 1;
            e = fn(m, &job, on);
        }
        if (e == ERR_OK)
            arena_back_to(arena, mark);
    }
    return e;
}

/* Moves by `on`, where it can. */
static enum err move_open_job(struct run_txn *m, struct job *job, enum job_event on)
{
    enum job_state ignored;
    if (job_decide(job->state, on, &ignored) != ERR_OK)
        return ERR_OK;
    bool was_suspended = job->state == JOB_SUSPENDED;
    enum err e = job_change(m, job, on);
    if (e == ERR_OK && was_suspended)
        return suspension_cancelled(m, job);
    const struct step_waits *waits = step_waits_of(m->def, job);
    bool ends_more = e == ERR_OK && on == JOB_ON_CANCEL && waits->cancelled != NULL;
    return ends_more ? waits->cancelled(m, job) : e;
}

static enum err move_open_jobs(struct run_txn *m, int64_t from, int64_t to, enum job_event on)
{
    return each_open_job(m, from, to, move_open_job, on);
}

/* Jobs that are only kept back go to their queue again; a delay or a sleep goes on. */
static enum err release_if_held(struct run_txn *m, struct job *job, enum job_event on)
{
    enum step_type type = job_step(m->def, job)->type;
    bool held = job->state == JOB_SCHEDULED && job->due_at < 0 &&
                (job->undo || step_type_is(type, STEP_QUEUED));
    return held ? job_change(m, job, on) : ERR_OK;
}

static enum err release_held(struct run_txn *m)
{
    return each_open_job(m, 1, JOB_ORDINAL_MAX, release_if_held, JOB_ON_WAKE);
}

/* --- the run itself --- */

/* The job that waits for this child looks in a turn of its own. It no longer waits when its step
 * has timed out or its run has ended. */
static enum err wake_parent(struct run_txn *m)
{
    struct job job;
    bool found = false;
    enum err e = jobs_find_at(m->tx->db, m->run.parent_run, m->run.parent_ordinal, &m->tx->arena,
                              &found, &job);
    if (e != ERR_OK || !found || job.state != JOB_DISPATCHED || !uuid_eq(job.child, m->run.id))
        return e;
    struct run_txn parent = {.read_tx = m->read_tx, .tx = m->tx, .run = {.num = m->run.parent_run}};
    return run_arm(&parent, m->run.parent_ordinal, m->tx->now_ms);
}

static enum err tell_end(struct run_txn *m)
{
    enum event_type type = event_of_run_end(m->run.status);
    m->run.finished_at = m->tx->now_ms;
    enum err e = run_txn_add_event(m, type, m->end_note.ptr != NULL ? m->end_note : m->run.error);
    if (e == ERR_OK)
        e = run_trace_ended(m);
    if (e == ERR_OK)
        e = tx_wake_run(m->tx, m->run.tenant, m->run.id, m->run.status);
    if (e == ERR_OK)
        e = run_disarm(m, TIMER_RUN, m->run.deadline_at);
    return e == ERR_OK && m->run.parent_run >= 0 ? wake_parent(m) : e;
}

/* The one door: status, slots, times and timeline of a run change here. */
enum err run_txn_apply(struct run_txn *m, enum run_event on)
{
    struct run_change change;
    enum err e = run_decide(m->run.status, on, &change);
    if (e != ERR_OK)
        return e;
    m->run.status = change.to;
    if (m->run.started_at < 0 && on == RUN_ON_START)
        m->run.started_at = m->tx->now_ms;
    if ((change.effects & FX_JOBS_CANCEL) != 0)
        e = move_open_jobs(m, 1, JOB_ORDINAL_MAX, JOB_ON_CANCEL);
    if (e == ERR_OK && (change.effects & FX_JOBS_HOLD) != 0)
        e = move_open_jobs(m, 1, JOB_ORDINAL_MAX, JOB_ON_HOLD);
    if (e == ERR_OK && (change.effects & FX_JOBS_RELEASE) != 0)
        e = release_held(m);
    if (e == ERR_OK && (change.effects & FX_SLOT_TAKE) != 0)
        e = run_txn_take_slots(m);
    if (e == ERR_OK && (change.effects & FX_QUEUE_LEAVE) != 0)
        e = run_txn_leave_queue(m, (change.effects & FX_SLOT_TAKE) != 0);
    if (e == ERR_OK && (change.effects & FX_SLOT_FREE) != 0)
        e = run_txn_free_slots(m);
    if (e == ERR_OK && (change.effects & FX_FINISH) != 0)
        e = tell_end(m);
    return e;
}

/* --- the end --- */

/* The output of the last step in the order written that has one. */
static enum err collect_output(struct run_txn *m)
{
    for (size_t i = m->def->step_count; i-- > 0;) {
        const struct step_state *s = &m->progress.steps[i];
        if (s->status != STEP_IS_SUCCEEDED)
            continue;
        if (m->views != NULL && m->views[i].has_job && !s->is_map) {
            m->run.output = m->views[i].job.output;
            return ERR_OK;
        }
        enum err e = values_output(m, i, &m->run.output);
        if (e != ERR_OK || !values_too_large(m, i, m->run.output))
            return e;
        /* The run has done its work, but must not look as if there had been nothing to show. */
        m->run.error = error_json(m->tx, "OUTPUT_TOO_LARGE",
                                  STR("The outputs of the last step's items are too large "
                                      "together. Read them from its jobs."));
        return m->run.error.ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
    }
    return ERR_OK;
}

static enum err collect_error(struct run_txn *m)
{
    if (m->progress.stop == STOP_TIMED_OUT) {
        m->run.error =
            error_json(m->tx, "RUN_TIMED_OUT", STR("The run took longer than timeout_s"));
        return m->run.error.ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
    }
    size_t step = (size_t)m->progress.cause;
    struct str cause;
    enum err e = values_error(m, step, &cause);
    if (e != ERR_OK)
        return e;
    bool undone = true;
    for (size_t i = 0; i < m->progress.count; i++)
        undone &= m->progress.steps[i].undo != UNDO_FAILED;
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    bool denied = m->progress.steps[step].status == STEP_IS_DENIED;
    json_add_text(&o, "code", denied ? STR("STEP_DENIED") : STR("STEP_FAILED"));
    json_add_text(&o, "step", m->def->steps[step].name);
    json_add_raw(&o, "cause", cause);
    if (!undone)
        json_add_bool(&o, "compensation_failed", true);
    json_close(&o, '}');
    m->run.error = arena_take(&m->tx->arena, &text);
    return m->run.error.ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
}

static enum err collect_result(struct run_txn *m, enum run_event on)
{
    if (on == RUN_ON_SUCCEED)
        return collect_output(m);
    bool bad = on == RUN_ON_FAIL || on == RUN_ON_TIME_OUT || on == RUN_ON_DENY;
    return bad ? collect_error(m) : ERR_OK;
}

/* --- going on --- */

static enum err stop_step(struct run_txn *m, size_t step)
{
    const struct step_state *s = &m->progress.steps[step];
    enum err e = ERR_OK;
    if (s->first > 0)
        e = move_open_jobs(m, s->first, s->first + s->items, JOB_ON_CANCEL);
    if (e == ERR_OK)
        advance_stopped(&m->progress, step);
    return e;
}

/* So many jobs at a time, the rest in a turn of its own. */
static enum err begin_items(struct run_txn *m, const struct next *next, int64_t *made)
{
    int64_t count = MIN(next->count, MAP_ITEMS_PER_TURN_MAX - *made);
    *made += count;
    return step_begin_items(m, next->step, count);
}

/* What is next takes of the tenant's share of the writer's time, and that is used up.
 * The first item of a step that has begun does not wait: see run_txn_advance(). */
static bool has_to_wait(const struct run_txn *m, const struct next *next)
{
    bool begins = next->kind == NEXT_BEGIN || next->kind == NEXT_UNDO ||
                  (next->kind == NEXT_ITEMS && m->progress.steps[next->step].begun > 0);
    return begins && cpu_shares_used_up(m->tx->cpu, m->run.tenant, m->tx->now_ms) &&
           step_takes_share(&m->def->steps[next->step]);
}

/* Must the rest wait for a turn of its own? A step begins together with its first job: its progress
 * does not tell one from the other. */
static bool is_enough(const struct run_txn *m, const struct next *next, int64_t made)
{
    bool many = made >= MAP_ITEMS_PER_TURN_MAX;
    switch (next->kind) {
    case NEXT_BEGIN:
        return many || run_txn_is_large(m);
    case NEXT_ITEMS:
        return many || (m->progress.steps[next->step].begun > 0 && run_txn_is_large(m));
    case NEXT_UNDO:
        return run_txn_is_large(m);
    case NEXT_NOTHING:
    case NEXT_SKIP:
    case NEXT_STOP:
    case NEXT_RUN:
        break;
    }
    return false;
}

enum err run_txn_advance(struct run_txn *m)
{
    enum err e = ERR_OK;
    int64_t made = 0;
    for (int64_t turn = 0; e == ERR_OK; turn++) {
        assert(turn < NEXTS_MAX);
        struct next next = advance_next(m->def, &m->progress, m->run.status);
        if (next.kind == NEXT_NOTHING)
            break;
        if (turn > 0 && is_enough(m, &next, made)) {
            e = run_arm(m, TIMER_GO_ON, m->tx->now_ms);
            break;
        }
        if (has_to_wait(m, &next)) {
            e = run_arm(m, TIMER_GO_ON,
                        cpu_shares_put_off(m->tx->cpu, m->run.tenant, m->tx->now_ms));
            break;
        }
        switch (next.kind) {
        case NEXT_NOTHING:
            break;
        case NEXT_BEGIN:
            e = step_begin(m, next.step);
            break;
        case NEXT_ITEMS:
            e = begin_items(m, &next, &made);
            break;
        case NEXT_SKIP:
            advance_skip(&m->progress, next.step, true);
            break;
        case NEXT_STOP:
            e = stop_step(m, next.step);
            break;
        case NEXT_UNDO:
            e = step_begin_undo(m, next.step);
            break;
        case NEXT_RUN:
            e = collect_result(m, next.on);
            if (e == ERR_OK)
                e = run_txn_apply(m, next.on);
            break;
        }
    }
    return e == ERR_OK ? run_txn_save(m) : e;
}
