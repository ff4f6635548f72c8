/* Moving one run on, inside a transaction. */
#include "core/run/run_txn.h"

#include "base/limits.h"
#include "core/admission/run_slots.h"
#include "core/run/approval_txn.h"
#include "core/run/job_txn.h"
#include "core/run/run_values.h"
#include "core/run/step_begin.h"
#include "core/txn/cpu_shares.h"
#include "store/run/signals.h"

enum { NEXTS_MAX = 100 * 1000 }; /* more in one turn is a bug, not a workflow */

enum err run_txn_add_event(struct run_txn *m, enum event_type type, struct str data)
{
    enum err e = events_append(m->tx->db, m->run.num, m->run.version + 1, m->tx->now_ms,
                               event_type_name(type), data);
    if (e != ERR_OK)
        return e;
    m->told = true;
    return tx_note_event(m->tx, m->run.tenant, m->run.num, ++m->run.version);
}

/* --- loading --- */

struct run run_blank(void)
{
    return (struct run){
        .input = STR("null"),
        .state = STR("{}"),
        .labels = STR("{}"),
        .started_at = -1,
        .finished_at = -1,
        .deadline_at = -1,
        .start_at = -1,
        .parent_run = -1,
        .parent_ordinal = -1,
    };
}

/* A run of an earlier version has one job per step that has begun, and no progress in its row. */
static void take_old_job(void *ctx, const struct job *job)
{
    struct progress *p = ctx;
    if (job->step < 0 || (size_t)job->step >= p->count)
        return; /* damage, which the doctor finds */
    struct step_state *s = &p->steps[job->step];
    static const enum step_status BY_STATE[JOB_STATE_COUNT] = {
        [JOB_SUCCEEDED] = STEP_IS_SUCCEEDED, [JOB_FAILED] = STEP_IS_FAILED,
        [JOB_CANCELLED] = STEP_IS_CANCELLED, [JOB_TIMED_OUT] = STEP_IS_TIMED_OUT,
        [JOB_DENIED] = STEP_IS_DENIED,       [JOB_SKIPPED] = STEP_IS_SKIPPED,
    };
    *s = (struct step_state){
        .status = STEP_IS_ACTIVE, .first = job->ordinal, .items = 1, .begun = 1};
    p->jobs = MAX(p->jobs, job->ordinal);
    if (!job_has_ended(job->state))
        return;
    s->status = BY_STATE[job->state];
    s->over = 1;
    s->seq = ++p->order;
    p->settled++;
}

static enum err load_progress(struct run_txn *m)
{
    struct arena *arena = &m->read_tx->arena;
    if (m->run.progress.ptr != NULL)
        return progress_parse(m->run.progress, m->def->step_count, arena, &m->progress);
    if (!progress_init(&m->progress, m->def->step_count, arena))
        return ERR_NO_MEMORY;
    return jobs_of_run(m->read_tx->db, m->run.num, take_old_job, &m->progress);
}

static enum err load_rest(struct run_txn *m, struct problem *p)
{
    /* Version 0.1.0 kept a start_at that was past when it came: such a run waits for no time. */
    if (m->run.start_at <= m->run.created_at)
        m->run.start_at = -1;
    enum err e = read_tx_definition(m->read_tx, m->run.tenant, m->run.workflow_id,
                                    m->run.workflow_version, p, &m->def);
    if (e != ERR_OK)
        return e; /* p says why */
    e = load_progress(m);
    return e == ERR_OK ? ERR_OK : problem_set(p, e, "cannot load how far the run is");
}

static enum err read_if(struct run_txn *m, struct read_tx *tx, int64_t run_num, struct problem *p,
                        bool *ret_found)
{
    *m = (struct run_txn){.read_tx = tx};
    *ret_found = false;
    enum err e = runs_find_num(tx->db, run_num, &tx->arena, ret_found, &m->run);
    if (e == ERR_OK && !*ret_found)
        return ERR_OK;
    if (e == ERR_OK)
        e = read_tx_tenant_num(tx, m->run.tenant, &m->tenant);
    if (e != ERR_OK)
        return problem_set(p, e, "cannot load the run");
    return load_rest(m, p);
}

enum err run_txn_read(struct run_txn *m, struct read_tx *tx, int64_t run_num, struct problem *p)
{
    bool found = false;
    enum err e = read_if(m, tx, run_num, p, &found);
    if (e == ERR_OK && !found)
        return problem_set(p, ERR_RUN_NOT_FOUND, "cannot load the run");
    return e;
}

enum err run_txn_load_if(struct run_txn *m, struct tx *tx, int64_t run_num, struct problem *p,
                         bool *ret_found)
{
    enum err e = read_if(m, &tx->read, run_num, p, ret_found);
    m->tx = tx;
    return e;
}

enum err run_txn_load(struct run_txn *m, struct tx *tx, int64_t run_num, struct problem *p)
{
    enum err e = run_txn_read(m, &tx->read, run_num, p);
    m->tx = tx;
    return e;
}

enum err run_txn_read_id(struct run_txn *m, struct op *op, struct read_tx *tx, struct uuid id)
{
    *m = (struct run_txn){.read_tx = tx};
    enum err e = read_tx_tenant(tx, op, &m->tenant);
    if (e != ERR_OK)
        return e;
    bool found = false;
    e = runs_find(tx->db, m->tenant->num, id, &tx->arena, &found, &m->run);
    if (e == ERR_OK && !found)
        return problem_set(&op->problem, ERR_RUN_NOT_FOUND, "there is no such run");
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "cannot read the run");
    return load_rest(m, &op->problem);
}

enum err run_txn_find(struct run_txn *m, struct op *op, struct tx *tx, struct uuid id)
{
    enum err e = run_txn_read_id(m, op, &tx->read, id);
    m->tx = tx;
    return e;
}

static enum err views_alloc(struct run_txn *m)
{
    m->views = arena_alloc(&m->read_tx->arena, m->def->step_count * sizeof(*m->views));
    return m->views != NULL ? ERR_OK : ERR_NO_MEMORY;
}

/* All its items together: none of their jobs speaks for it. */
static enum err show_map(struct run_txn *m, size_t step, struct step_view *view)
{
    view->has_job = false;
    enum err e = values_output(m, step, &view->output);
    if (e == ERR_OK && view->state->failed > 0)
        e = values_error(m, step, &view->error);
    return e;
}

enum err run_txn_show(struct run_txn *m, const struct step_view **ret_views)
{
    bool fresh = m->views != NULL; /* made here: its jobs are known */
    enum err e = fresh ? ERR_OK : views_alloc(m);
    for (size_t i = 0; i < m->def->step_count && e == ERR_OK; i++) {
        struct step_view *view = &m->views[i];
        view->state = &m->progress.steps[i];
        if (view->state->is_map)
            e = show_map(m, i, view);
        else if (view->state->first > 0 && !fresh)
            e = jobs_find_at(m->read_tx->db, m->run.num, view->state->first, &m->read_tx->arena,
                             &view->has_job, &view->job);
    }
    *ret_views = m->views;
    return e;
}

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

/* A child of a run that ended is cancelled in a turn of its own. */
enum err run_txn_cancel_child_later(struct tx *tx, struct uuid child)
{
    struct run_txn m = {.read_tx = &tx->read, .tx = tx, .run = {.num = uuid_time(child)}};
    return run_arm(&m, TIMER_PARENT_OVER, tx->now_ms);
}

/* Moves by `on`, where it can. */
static enum err move_open_job(struct run_txn *m, struct job *job, enum job_event on)
{
    enum job_state ignored;
    if (job_decide(job->state, on, &ignored) != ERR_OK)
        return ERR_OK;
    enum err e = job_change(m, job, on);
    if (e == ERR_OK && on == JOB_ON_CANCEL && !uuid_is_nil(job->child))
        e = run_txn_cancel_child_later(m->tx, job->child);
    return e;
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
                (job->undo || type == STEP_TASK || type == STEP_HTTP);
    return held ? job_change(m, job, on) : ERR_OK;
}

static enum err release_held(struct run_txn *m)
{
    return each_open_job(m, 1, JOB_ORDINAL_MAX, release_if_held, JOB_ON_WAKE);
}

/* --- the run itself --- */

static enum err tell_end(struct run_txn *m)
{
    enum event_type type = event_of_run_end(m->run.status);
    m->run.finished_at = m->tx->now_ms;
    enum err e = run_txn_add_event(m, type, m->end_note.ptr != NULL ? m->end_note : m->run.error);
    if (e == ERR_OK)
        e = tx_wake_run(m->tx, m->run.tenant, m->run.id);
    if (e == ERR_OK)
        e = run_disarm(m, TIMER_RUN, m->run.deadline_at);
    if (e != ERR_OK || m->run.parent_run < 0)
        return e;
    /* The job that waits for it looks in a turn of its own. */
    struct run_txn parent = {.read_tx = m->read_tx, .tx = m->tx, .run = {.num = m->run.parent_run}};
    return run_arm(&parent, m->run.parent_ordinal, m->tx->now_ms);
}

/* A child is part of its parent's slot. */
static bool counts(const struct run_txn *m)
{
    return m->run.parent_run < 0;
}

/* The one door: status, slots, times and timeline of a run change here. */
static enum err apply(struct run_txn *m, enum run_event on)
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
    if (e == ERR_OK && (change.effects & FX_SLOT_TAKE) != 0 && counts(m))
        e = run_slots_take(m->tx, m->tenant, &m->run);
    if (e == ERR_OK && (change.effects & FX_QUEUE_LEAVE) != 0 && m->run.start_at < 0)
        e = run_queue_leave(m->tx, m->tenant, &m->run, (change.effects & FX_SLOT_TAKE) != 0);
    if (e == ERR_OK && (change.effects & FX_SLOT_FREE) != 0 && counts(m))
        e = run_slots_free(m->tx, m->tenant, &m->run);
    if (e == ERR_OK && (change.effects & FX_FINISH) != 0)
        e = tell_end(m);
    return e;
}

/* Every change of the row appends an event, so that a reader sees by the version that the run has
 * changed. */
static enum err tell_progress(struct run_txn *m)
{
    return m->told ? ERR_OK : run_txn_add_event(m, EVENT_RUN_PROGRESSED, STR_NONE);
}

enum err run_txn_save(struct run_txn *m)
{
    struct buf text;
    buf_init(&text, PROGRESS_TEXT_MAX);
    progress_put(&text, &m->progress);
    m->run.progress = buf_ok(&text) ? buf_str(&text) : STR_NONE;
    enum err e = buf_ok(&text) ? tell_progress(m) : ERR_NO_MEMORY;
    if (e == ERR_OK && m->is_new)
        e = runs_insert(m->tx->db, &m->run);
    else if (e == ERR_OK)
        e = runs_update(m->tx->db, &m->run);
    if (e == ERR_OK && arena_keep(&m->tx->arena, &m->run.progress))
        m->is_new = m->told = false;
    else if (e == ERR_OK)
        e = ERR_NO_MEMORY;
    buf_release(&text);
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
        m->run.error =
            error_json(m->tx, "OUTPUT_TOO_LARGE",
                       STR("the outputs of the last step's items are too large together: "
                           "they are kept with its jobs"));
        return m->run.error.ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
    }
    return ERR_OK;
}

static enum err collect_error(struct run_txn *m)
{
    if (m->progress.stop == STOP_TIMED_OUT) {
        m->run.error =
            error_json(m->tx, "RUN_TIMED_OUT", STR("the run took longer than timeout_s"));
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

enum err run_txn_job_ended(struct run_txn *m, const struct job *job)
{
    static const enum step_status BY_STATE[JOB_STATE_COUNT] = {
        [JOB_SUCCEEDED] = STEP_IS_SUCCEEDED,
        [JOB_FAILED] = STEP_IS_FAILED,
        [JOB_TIMED_OUT] = STEP_IS_TIMED_OUT,
        [JOB_DENIED] = STEP_IS_DENIED,
    };
    size_t step = (size_t)job->step;
    assert(job_has_ended(job->state));
    if (!advance_expects(&m->progress, step, job->undo))
        return ERR_DAMAGED;
    if (job->undo)
        advance_undo_over(&m->progress, step, job->state == JOB_SUCCEEDED);
    else
        advance_job_over(m->def, &m->progress, step, BY_STATE[job->state]);
    if (m->step_values != NULL)
        m->step_values[step].value = NULL;
    if (m->views != NULL && !job->undo) {
        m->views[step].job = *job;
        m->views[step].has_job = true;
    }
    return ERR_OK;
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

bool run_txn_is_large(const struct run_txn *m)
{
    return m->tx->arena.used > RUN_BYTES_PER_TURN_MAX;
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
                e = apply(m, next.on);
            break;
        }
    }
    return e == ERR_OK ? run_txn_save(m) : e;
}

/* --- new runs --- */

/* The first lines of a new run's story. */
static enum err tell_created(struct run_txn *m)
{
    struct buf data;
    buf_init(&data, 4 * KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_text(&o, "workflow_id", m->run.workflow_id);
    json_add_int(&o, "workflow_version", m->run.workflow_version);
    json_add_text(&o, "created_by", m->run.created_by);
    json_close(&o, '}');
    enum err e =
        buf_ok(&data) ? run_txn_add_event(m, EVENT_RUN_CREATED, buf_str(&data)) : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

static enum err begin_run(struct run_txn *m, enum run_status status)
{
    assert(m->tenant->num > 0 && m->def != NULL);
    m->is_new = true;
    m->run.tenant = m->tenant->num;
    m->run.status = status;
    m->run.revision = 1;
    if (m->progress.steps == NULL &&
        !progress_init(&m->progress, m->def->step_count, &m->tx->arena))
        return ERR_NO_MEMORY;
    enum err e = views_alloc(m);
    if (e == ERR_OK)
        e = tx_new_run(m->tx, &m->run.id, &m->run.num);
    return e == ERR_OK ? tell_created(m) : e;
}

static enum err stored(enum err e, struct problem *p)
{
    return e == ERR_OK ? ERR_OK : problem_set(p, e, "cannot store the run");
}

static enum err set_deadline(struct run_txn *m)
{
    if (m->def->timeout_ms < 0)
        return ERR_OK;
    m->run.deadline_at = m->tx->now_ms + m->def->timeout_ms;
    return run_arm(m, TIMER_RUN, m->run.deadline_at);
}

enum err run_txn_create(struct run_txn *m, struct problem *p)
{
    enum err e = begin_run(m, RUN_PENDING);
    if (e == ERR_OK)
        e = run_slots_take(m->tx, m->tenant, &m->run);
    if (e == ERR_OK)
        e = set_deadline(m);
    if (e == ERR_OK)
        e = run_txn_advance(m);
    return stored(e, p);
}

enum err run_txn_create_from(struct run_txn *m, const struct run_txn *from, const bool *again,
                             copy_step_fn *copy, struct problem *p)
{
    enum err e = begin_run(m, RUN_PENDING);
    if (e == ERR_OK)
        e = run_slots_take(m->tx, m->tenant, &m->run);
    for (size_t i = 0; i < m->def->step_count && e == ERR_OK; i++) {
        enum step_status was = from->progress.steps[i].status;
        if (!again[i] && (was == STEP_IS_SUCCEEDED || was == STEP_IS_SKIPPED))
            e = copy(m, from, i);
    }
    m->views = NULL; /* copied jobs are read from their rows */
    if (e == ERR_OK)
        e = set_deadline(m);
    if (e == ERR_OK)
        e = run_txn_advance(m);
    return stored(e, p);
}

enum err run_txn_create_queued(struct run_txn *m, int64_t waits_for, struct problem *p)
{
    enum err e = begin_run(m, RUN_QUEUED);
    if (e == ERR_OK)
        e = run_queue_enter(m->tx, m->tenant, &m->run, waits_for);
    if (e == ERR_OK)
        e = run_txn_add_event(m, EVENT_RUN_QUEUED, STR_NONE);
    if (e == ERR_OK)
        e = run_txn_save(m);
    return stored(e, p);
}

enum err run_txn_create_delayed(struct run_txn *m, struct problem *p)
{
    assert(m->run.start_at >= 0);
    enum err e = begin_run(m, RUN_QUEUED);
    if (e == ERR_OK)
        e = run_arm(m, TIMER_RUN, m->run.start_at);
    if (e == ERR_OK)
        e = run_txn_add_event(m, EVENT_RUN_SCHEDULED, STR_NONE);
    if (e == ERR_OK)
        e = run_txn_save(m);
    return stored(e, p);
}

enum err run_txn_create_child(struct run_txn *m, struct problem *p)
{
    assert(m->run.parent_run > 0);
    enum err e = begin_run(m, RUN_PENDING);
    if (e == ERR_OK)
        e = set_deadline(m);
    if (e == ERR_OK)
        e = run_arm(m, TIMER_GO_ON, m->tx->now_ms);
    if (e == ERR_OK)
        e = run_txn_save(m);
    if (e == ERR_OK)
        e = tx_count_admission(m->tx, m->tenant, "child", STR("admitted"), 0);
    return stored(e, p);
}

/* --- control --- */

enum err run_txn_admit(struct run_txn *m)
{
    enum err e = apply(m, RUN_ON_ADMIT);
    m->run.start_at = -1;
    if (e == ERR_OK)
        e = run_txn_add_event(m, EVENT_RUN_ADMITTED, STR_NONE);
    if (e == ERR_OK)
        e = set_deadline(m);
    if (e == ERR_OK)
        tx_observe_queue_wait(m->tx, m->tenant, m->tx->now_ms - m->run.created_at);
    return e == ERR_OK ? run_txn_advance(m) : e;
}

enum err run_txn_fail(struct run_txn *m)
{
    assert(m->run.error.ptr != NULL && m->run.start_at >= 0);
    enum err e = apply(m, RUN_ON_FAIL);
    m->run.start_at = -1;
    return e == ERR_OK ? run_txn_save(m) : e;
}

static struct str control_note(struct run_txn *m, struct str actor, struct str reason)
{
    struct buf note;
    buf_init(&note, 16 * KIB);
    struct json_out o = json_out_to(&note);
    json_open(&o, NULL, '{');
    json_add_text(&o, "by", actor);
    json_add_text_or_null(&o, "reason", reason);
    json_close(&o, '}');
    return arena_take(&m->tx->arena, &note);
}

enum err run_txn_cancel(struct run_txn *m, struct str actor, struct str reason)
{
    bool delayed = m->run.status == RUN_QUEUED && m->run.start_at >= 0;
    m->end_note = control_note(m, actor, reason);
    if (m->end_note.ptr == NULL)
        return ERR_NO_MEMORY;
    enum err e = apply(m, RUN_ON_CANCEL);
    m->end_note = STR_NONE;
    if (e == ERR_OK && delayed)
        e = run_disarm(m, TIMER_RUN, m->run.start_at);
    for (size_t i = 0; i < m->progress.count && e == ERR_OK; i++)
        advance_stopped(&m->progress, i);
    return e == ERR_OK ? run_txn_save(m) : e;
}

/* A queued run has no jobs: it can be ended although its definition cannot be loaded. */
static enum err load_to_end(struct run_txn *m, struct tx *tx, int64_t run_num, struct problem *p)
{
    enum err e = run_txn_load(m, tx, run_num, p);
    bool bare = e != ERR_OK && m->tenant != NULL && m->run.status == RUN_QUEUED;
    if (bare)
        m->progress = (struct progress){0};
    return bare ? ERR_OK : e;
}

enum err run_txn_give_up(struct tx *tx, int64_t run_num, enum err why, const char *message,
                         struct problem *p)
{
    struct run_txn m;
    enum err e = load_to_end(&m, tx, run_num, p);
    if (e != ERR_OK || run_has_ended(m.run.status))
        return e;
    bool delayed = m.run.status == RUN_QUEUED && m.run.start_at >= 0;
    m.run.error = error_json(tx, err_code(why), str_of(message));
    if (m.run.error.ptr == NULL)
        return ERR_NO_MEMORY;
    e = apply(&m, RUN_ON_GIVE_UP);
    if (e == ERR_OK && delayed)
        e = run_disarm(&m, TIMER_RUN, m.run.start_at);
    for (size_t i = 0; i < m.progress.count && e == ERR_OK; i++)
        advance_stopped(&m.progress, i);
    if (e != ERR_OK)
        return e;
    return m.progress.count > 0 ? run_txn_save(&m) : runs_update(tx->db, &m.run);
}

enum err run_txn_control(struct run_txn *m, enum run_event on, struct str actor)
{
    struct str note = control_note(m, actor, STR_NONE);
    if (note.ptr == NULL)
        return ERR_NO_MEMORY;
    enum err e = apply(m, on);
    if (e == ERR_OK)
        e = run_txn_add_event(m, on == RUN_ON_PAUSE ? EVENT_RUN_PAUSED : EVENT_RUN_RESUMED, note);
    return e == ERR_OK ? run_txn_advance(m) : e;
}

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
    if (s->first == 0 || s->undo != UNDO_NONE || (type != STEP_TASK && type != STEP_HTTP))
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
        *ret &= offers.made == 0 || offers.ended_before == 0;
    }
    return e;
}

/* Jobs of tasks and calls are done again under their own ids, so that who has seen them before can
 * tell; steps of other kinds begin anew. */
static enum err revive_step(struct run_txn *m, size_t step)
{
    struct step_state *s = &m->progress.steps[step];
    struct step_offers offers = {.m = m};
    enum err e = count_offers(m, step, &offers);
    if (e != ERR_OK)
        return e;
    if (offers.made == 0) { /* what could not be evaluated is evaluated again, and asked again */
        if (m->def->steps[step].type == STEP_WAIT_SIGNAL) /* its senders will not send again */
            e = signals_give_back(m->tx->db, m->run.num, s->first, s->first + s->begun);
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
        revived++;
        if (e == ERR_OK)
            arena_back_to(&m->tx->arena, mark);
    }
    advance_revive(&m->progress, step, revived);
    return e;
}

enum err run_txn_retry(struct run_txn *m, struct str actor)
{
    struct str note = control_note(m, actor, STR_NONE);
    if (note.ptr == NULL)
        return ERR_NO_MEMORY;
    m->run.error = STR_NONE;
    m->run.finished_at = -1;
    enum err e = apply(m, RUN_ON_RETRY);
    if (e == ERR_OK)
        e = run_txn_add_event(m, EVENT_RUN_RETRIED, note);
    bool *undone = arena_alloc(&m->tx->arena, m->progress.count * sizeof(*undone));
    if (e == ERR_OK && undone == NULL)
        e = ERR_NO_MEMORY;
    if (e == ERR_OK)
        advance_mark_undone(m->def, &m->progress, undone);
    for (size_t i = 0; i < m->progress.count && e == ERR_OK; i++) {
        if (undone[i] && step_is_settled(m->progress.steps[i].status))
            advance_again(&m->progress, i);
        else if (advance_may_retry(m->def, &m->progress, i))
            e = revive_step(m, i);
    }
    advance_unstop(&m->progress);
    if (e == ERR_OK)
        e = set_deadline(m);
    return e == ERR_OK ? run_txn_advance(m) : e;
}
