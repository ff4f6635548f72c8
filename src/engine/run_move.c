/* Moving one run on, inside a transaction. */
#include "engine/run_move.h"

#include "base/limits.h"
#include "engine/run_slots.h"

/* --- the timeline --- */

static enum err tell(struct run_move *m, const char *type, struct str data)
{
    int64_t seq = m->is_new ? ++m->events_told : 0;
    return events_append(m->tx->db, m->run.num, seq, m->tx->now_ms, str_of(type), data);
}

static enum err tell_job(struct run_move *m, const char *type, const struct job *job)
{
    struct buf data;
    buf_init(&data, 4 * KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "job_id", job->id);
    json_add_text(&o, "step", m->def->steps[job->step].name);
    json_add_int(&o, "attempt", job->attempt);
    if (job->worker.ptr != NULL)
        json_add_text(&o, "worker_id", job->worker);
    json_close(&o, '}');
    enum err e = buf_ok(&data) ? tell(m, type, buf_str(&data)) : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

/* --- loading --- */

static enum err steps_alloc(struct run_move *m)
{
    m->steps = arena_alloc(&m->tx->arena, m->def->step_count * sizeof(*m->steps));
    return m->steps != NULL ? ERR_OK : ERR_NO_MEMORY;
}

struct loading {
    struct run_move *m;
    bool full;
};

static void take_job(void *ctx, const struct job *row)
{
    struct loading *l = ctx;
    struct run_move *m = l->m;
    assert(row->step >= 0 && (size_t)row->step < m->def->step_count);
    struct step_view *view = &m->steps[row->step];
    view->begun = true;
    view->job = *row;
    struct job *j = &view->job;
    l->full |= !(arena_keep(&m->tx->arena, &j->queue) && arena_keep(&m->tx->arena, &j->worker) &&
                 arena_keep(&m->tx->arena, &j->output) && arena_keep(&m->tx->arena, &j->error));
    m->jobs_made = MAX(m->jobs_made, row->ordinal);
}

enum err run_move_load_steps(struct run_move *m, struct problem *p)
{
    enum err e = tx_definition(m->tx, m->run.tenant, m->run.workflow_id, m->run.workflow_version, p,
                               &m->def);
    if (e == ERR_OK)
        e = steps_alloc(m);
    if (e != ERR_OK)
        return problem_set(p, e, "cannot load the run's definition");
    struct loading l = {m, false};
    e = jobs_of_run(m->tx->db, m->run.num, take_job, &l);
    if (e == ERR_OK && l.full)
        e = ERR_NO_MEMORY;
    return e == ERR_OK ? ERR_OK : problem_set(p, e, "cannot load the run's steps");
}

enum err run_move_load(struct run_move *m, struct tx *tx, int64_t run_num, struct problem *p)
{
    *m = (struct run_move){.tx = tx};
    bool found = false;
    enum err e = runs_find_num(tx->db, run_num, &tx->arena, &found, &m->run);
    if (e == ERR_OK && !found)
        e = ERR_RUN_NOT_FOUND;
    if (e == ERR_OK)
        e = tx_tenant_num(tx, m->run.tenant, &m->tenant);
    if (e != ERR_OK)
        return problem_set(p, e, "cannot load the run");
    return run_move_load_steps(m, p);
}

enum err run_move_find(struct run_move *m, struct op *op, struct tx *tx, struct uuid id)
{
    *m = (struct run_move){.tx = tx};
    enum err e = tx_tenant(tx, op, &m->tenant);
    if (e != ERR_OK)
        return e;
    bool found = false;
    e = runs_find(tx->db, m->tenant->num, id, &tx->arena, &found, &m->run);
    if (e == ERR_OK && !found)
        return problem_set(&op->problem, ERR_RUN_NOT_FOUND, "there is no such run");
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "cannot read the run");
    return run_move_load_steps(m, &op->problem);
}

/* --- jobs --- */

/* The timer that belongs to a job in this state, if it has one. */
static bool timer_of(const struct job *job, struct timer *ret)
{
    if (job->due_at < 0)
        return false;
    assert(job->state == JOB_RUNNING || job->state == JOB_SCHEDULED);
    *ret = (struct timer){job->due_at, job->run, job->ordinal, job->lease_epoch};
    return true;
}

static enum err arm(struct run_move *m, const struct job *job)
{
    struct timer timer;
    if (!timer_of(job, &timer))
        return ERR_OK;
    struct tx *tx = m->tx;
    tx->next_due = tx->next_due < 0 ? timer.due_at : MIN(tx->next_due, timer.due_at);
    return timers_insert(tx->db, &timer);
}

static enum err begin_step(struct run_move *m, size_t i)
{
    const struct step_def *def = &m->def->steps[i];
    struct job *job = &m->steps[i].job;
    int64_t now = m->tx->now_ms;
    *job = (struct job){
        .run = m->run.num,
        .ordinal = m->jobs_made + 1,
        .id = jobs_new_id(m->tx->env, m->run.num, m->jobs_made + 1),
        .tenant = m->run.tenant,
        .step = (int64_t)i,
        .state = JOB_PENDING,
        .queue = def->queue.ptr != NULL ? def->queue : STR(""),
        .urgency = -m->run.priority,
        .due_at = -1,
        .created_at = now,
        .started_at = -1,
        .finished_at = -1,
    };
    m->jobs_made++;
    m->steps[i].begun = true;
    if (def->type == STEP_SLEEP) {
        job->state = JOB_SCHEDULED;
        job->attempt = 1;
        job->started_at = now;
        job->due_at = def->until_ms >= 0 ? def->until_ms : now + def->duration_ms;
    }
    enum err e = jobs_insert(m->tx->db, job);
    if (e == ERR_OK)
        e = arm(m, job);
    if (e == ERR_OK)
        e = tell_job(m, job->state == JOB_SCHEDULED ? "job.scheduled" : "job.created", job);
    if (e == ERR_OK && job->state == JOB_PENDING)
        e = tx_wake_queue(m->tx, job->tenant, job->queue);
    return e;
}

static const char *const JOB_EVENT_TYPES[] = {
    [JOB_ON_CLAIM] = "job.claimed",      [JOB_ON_EXPIRE] = "job.lease_expired",
    [JOB_ON_COMPLETE] = "job.succeeded", [JOB_ON_FAIL] = "job.failed",
    [JOB_ON_FIRE] = "job.succeeded",     [JOB_ON_CANCEL] = "job.cancelled",
};
static_assert(ARRAY_LEN(JOB_EVENT_TYPES) == JOB_EVENT_COUNT, "one type per event");

enum err run_move_job(struct run_move *m, struct job *job, enum job_event on)
{
    struct job *kept = &m->steps[job->step].job;
    assert(m->steps[job->step].begun && kept->ordinal == job->ordinal);
    enum job_state to;
    enum err e = job_decide(kept->state, on, &to);
    if (e != ERR_OK)
        return e;
    struct timer old;
    if (timer_of(kept, &old))
        e = timers_delete(m->tx->db, &old);
    job->state = to;
    if (on == JOB_ON_CLAIM) {
        job->attempt = kept->attempt + 1;
        job->lease_epoch = kept->lease_epoch + 1;
        job->started_at = m->tx->now_ms;
    } else {
        job->due_at = -1;
    }
    if (job_is_over(to))
        job->finished_at = m->tx->now_ms;
    if (e == ERR_OK)
        e = jobs_update(m->tx->db, job, kept->state, kept->lease_epoch);
    if (e == ERR_OK)
        e = arm(m, job);
    if (e == ERR_OK)
        e = tell_job(m, JOB_EVENT_TYPES[on], job);
    if (e == ERR_OK && to == JOB_PENDING)
        e = tx_wake_queue(m->tx, job->tenant, job->queue);
    if (e == ERR_OK)
        *kept = *job;
    return e;
}

static enum err cancel_open_jobs(struct run_move *m)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < m->def->step_count && e == ERR_OK; i++) {
        if (!m->steps[i].begun || job_is_over(m->steps[i].job.state))
            continue;
        struct job job = m->steps[i].job;
        e = run_move_job(m, &job, JOB_ON_CANCEL);
    }
    return e;
}

/* --- the run itself --- */

/* The one door: status, slot, times and timeline of a run change here. */
static enum err apply(struct run_move *m, enum run_event on)
{
    struct run_change change;
    enum err e = run_decide(m->run.status, on, &change);
    if (e != ERR_OK)
        return e;
    m->run.status = change.to;
    if (m->run.started_at < 0 && on == RUN_ON_START)
        m->run.started_at = m->tx->now_ms;
    if ((change.effects & FX_JOBS_CANCEL) != 0)
        e = cancel_open_jobs(m);
    if (e == ERR_OK && (change.effects & FX_SLOT_TAKE) != 0)
        e = run_slots_take(m->tx, m->tenant, &m->run);
    if (e == ERR_OK && (change.effects & FX_QUEUE_LEAVE) != 0)
        e = run_queue_leave(m->tx, m->tenant, &m->run, (change.effects & FX_SLOT_TAKE) != 0);
    if (e == ERR_OK && (change.effects & FX_SLOT_FREE) != 0)
        e = run_slots_free(m->tx, m->tenant, &m->run);
    if (e == ERR_OK && (change.effects & FX_FINISH) != 0) {
        char type[32];
        (void)snprintf(type, sizeof(type), "run.%s", run_status_name(change.to));
        m->run.finished_at = m->tx->now_ms;
        e = tell(m, type, m->end_note.ptr != NULL ? m->end_note : m->run.error);
        if (e == ERR_OK)
            e = tx_wake_run(m->tx, m->run.tenant, m->run.id);
    }
    return e;
}

static enum err save(struct run_move *m)
{
    if (!m->is_new)
        return runs_update(m->tx->db, &m->run);
    m->is_new = false;
    return runs_insert(m->tx->db, &m->run);
}

/* What a finished run hands back: the last step's output, or the first failed step's error. */
static enum err collect_result(struct run_move *m, bool failed)
{
    if (!failed) {
        m->run.output = m->steps[m->def->step_count - 1].job.output;
        return ERR_OK;
    }
    for (size_t i = 0; i < m->def->step_count; i++) {
        const struct step_view *view = &m->steps[i];
        if (!view->begun || view->job.state != JOB_FAILED)
            continue;
        struct buf text;
        buf_init(&text, JSON_TEXT_MAX);
        struct json_out o = json_out_to(&text);
        json_open(&o, NULL, '{');
        json_add_text(&o, "code", STR("STEP_FAILED"));
        json_add_text(&o, "step", m->def->steps[i].name);
        json_add_raw(&o, "cause", view->job.error);
        json_close(&o, '}');
        m->run.error = buf_ok(&text) ? arena_str(&m->tx->arena, buf_str(&text)) : STR_NONE;
        buf_release(&text);
        return m->run.error.ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
    }
    assert(!"a run fails because a step has failed");
    return ERR_INTERNAL;
}

enum err run_move_finish(struct run_move *m)
{
    size_t count = m->def->step_count;
    struct step_progress *progress = arena_alloc(&m->tx->arena, count * sizeof(*progress));
    size_t *room = arena_alloc(&m->tx->arena, count * sizeof(*room));
    if (progress == NULL || room == NULL)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        progress[i] = (struct step_progress){m->steps[i].begun, m->steps[i].job.state};
    struct advance next;
    run_advance(m->def, progress, m->run.status, room, &next);
    enum err e = ERR_OK;
    for (size_t i = 0; i < next.begin_count && e == ERR_OK; i++)
        e = begin_step(m, next.begin[i]);
    for (size_t i = 0; i < next.event_count && e == ERR_OK; i++) {
        if (next.events[i] == RUN_ON_SUCCEED || next.events[i] == RUN_ON_FAIL)
            e = collect_result(m, next.events[i] == RUN_ON_FAIL);
        if (e == ERR_OK)
            e = apply(m, next.events[i]);
    }
    return e == ERR_OK ? save(m) : e;
}

/* The first lines of a new run's story. */
static enum err tell_created(struct run_move *m)
{
    struct buf data;
    buf_init(&data, 4 * KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_text(&o, "workflow_id", m->run.workflow_id);
    json_add_int(&o, "workflow_version", m->run.workflow_version);
    json_add_text(&o, "created_by", m->run.created_by);
    json_close(&o, '}');
    enum err e = buf_ok(&data) ? tell(m, "run.created", buf_str(&data)) : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

static enum err begin_run(struct run_move *m, enum run_status status)
{
    assert(m->tenant->num > 0 && m->def != NULL);
    m->is_new = true;
    m->run.tenant = m->tenant->num;
    m->run.status = status;
    m->run.version = 1;
    enum err e = steps_alloc(m);
    if (e == ERR_OK)
        e = tx_new_run(m->tx, &m->run.id, &m->run.num);
    return e == ERR_OK ? tell_created(m) : e;
}

enum err run_move_create(struct run_move *m, struct problem *p)
{
    enum err e = begin_run(m, RUN_PENDING);
    if (e == ERR_OK)
        e = run_slots_take(m->tx, m->tenant, &m->run);
    if (e == ERR_OK)
        e = run_move_finish(m);
    return e == ERR_OK ? ERR_OK : problem_set(p, e, "cannot store the run");
}

enum err run_move_create_queued(struct run_move *m, int64_t waits_for, struct problem *p)
{
    enum err e = begin_run(m, RUN_QUEUED);
    if (e == ERR_OK)
        e = run_queue_enter(m->tx, m->tenant, &m->run, waits_for);
    if (e == ERR_OK)
        e = tell(m, "run.queued", STR_NONE);
    if (e == ERR_OK)
        e = save(m);
    return e == ERR_OK ? ERR_OK : problem_set(p, e, "cannot store the run");
}

enum err run_move_admit(struct run_move *m)
{
    enum err e = apply(m, RUN_ON_ADMIT);
    if (e == ERR_OK)
        e = tell(m, "run.admitted", STR_NONE);
    if (e == ERR_OK)
        tx_observe_queue_wait(m->tx, m->tenant, m->tx->now_ms - m->run.created_at);
    return e == ERR_OK ? run_move_finish(m) : e;
}

enum err run_move_cancel(struct run_move *m, struct str actor, struct str reason)
{
    struct buf note;
    buf_init(&note, 16 * KIB);
    struct json_out o = json_out_to(&note);
    json_open(&o, NULL, '{');
    json_add_text(&o, "by", actor);
    json_add_text_or_null(&o, "reason", reason);
    json_close(&o, '}');
    m->end_note = buf_str(&note);
    enum err e = buf_ok(&note) ? apply(m, RUN_ON_CANCEL) : ERR_NO_MEMORY;
    m->end_note = STR_NONE;
    buf_release(&note);
    return e == ERR_OK ? save(m) : e;
}
