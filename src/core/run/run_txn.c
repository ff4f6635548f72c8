/* One run inside a transaction: loading and saving it. */
#include "core/run/run_txn.h"

#include "base/limits.h"
#include "core/admission/run_slots.h"

enum err run_txn_add_event(struct run_txn *m, enum event_type type, struct str data)
{
    return run_txn_add_named_event(m, type, data, -1, STR_NONE);
}

enum err run_txn_add_named_event(struct run_txn *m, enum event_type type, struct str data,
                                 int64_t job, struct str published_as)
{
    unsigned flags = event_type_flags(type);
    assert(((flags & EVENT_OFFERS_JOB) != 0) == (job > 0));
    assert(((flags & EVENT_HAS_NAME) != 0) == (published_as.ptr != NULL));
    (void)flags;
    struct event event = {m->run.version + 1, m->tx->now_ms, event_type_name(type), data, job,
                          published_as};
    m->run.version++;
    m->told = true;
    return tx_add_event(m->tx, m->run.tenant, m->run.num, &event);
}

/* --- invariants --- */

/* The first thing that the row of a run says and its steps contradict; NULL: none. */
static const char *contradiction(const struct run_txn *m)
{
    enum run_status status = m->run.status;
    if (run_has_ended(status) != (m->run.finished_at >= 0))
        return "its status and finished_at contradict each other";
    if (status == RUN_QUEUED && (m->progress.jobs > 0 || m->progress.settled > 0))
        return "it is queued and has begun";
    if (status == RUN_SUCCEEDED && (size_t)m->progress.settled < m->progress.count)
        return "it has succeeded and not all steps are settled";
    return NULL;
}

static bool should_have_slots(const struct run *run)
{
    return run_holds_slot(run->status) && run->parent_run < 0;
}

static bool should_be_in_queue(const struct run *run)
{
    return run->status == RUN_QUEUED && run->start_at < 0;
}

static bool has_open_step(const struct progress *p)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->steps[i].status == STEP_IS_ACTIVE || p->steps[i].over < p->steps[i].begun)
            return true;
    }
    return false;
}

/* What run_txn.h says of every status. */
static void assert_run(const struct run_txn *m)
{
    assert(m->tenant->num == m->run.tenant && m->progress.count == m->def->step_count);
    assert(m->run.num > 0 && m->run.version > 0);
    assert(contradiction(m) == NULL && progress_is_sound(&m->progress));
    assert(m->has_slots == should_have_slots(&m->run));
    assert(m->in_queue == should_be_in_queue(&m->run));
    assert(!run_has_ended(m->run.status) || !has_open_step(&m->progress));
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
    return e == ERR_OK ? ERR_OK : problem_set(p, e, "Cannot load the progress of the run");
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
        return problem_set(p, e, "Cannot load the run");
    return load_rest(m, p);
}

enum err run_txn_read(struct run_txn *m, struct read_tx *tx, int64_t run_num, struct problem *p)
{
    bool found = false;
    enum err e = read_if(m, tx, run_num, p, &found);
    if (e == ERR_OK && !found)
        return problem_set(p, ERR_RUN_NOT_FOUND, "Cannot load the run");
    return e;
}

enum err run_txn_begin_change(struct run_txn *m, struct tx *tx, struct problem *p)
{
    const char *why = contradiction(m);
    if (why != NULL)
        return problem_set(p, ERR_DAMAGED, "Run %lld is damaged: %s", (long long)m->run.num, why);
    assert(tx->unwritten.owner != m->run.num); /* or it was read without its last events */
    m->tx = tx;
    m->has_slots = should_have_slots(&m->run);
    m->in_queue = should_be_in_queue(&m->run);
    return ERR_OK;
}

enum err run_txn_load_if(struct run_txn *m, struct tx *tx, int64_t run_num, struct problem *p,
                         bool *ret_found)
{
    enum err e = tx_write_events(tx);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot write a timeline");
    e = read_if(m, &tx->read, run_num, p, ret_found);
    return e == ERR_OK && *ret_found ? run_txn_begin_change(m, tx, p) : e;
}

enum err run_txn_load(struct run_txn *m, struct tx *tx, int64_t run_num, struct problem *p)
{
    enum err e = tx_write_events(tx);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot write a timeline");
    e = run_txn_read(m, &tx->read, run_num, p);
    return e == ERR_OK ? run_txn_begin_change(m, tx, p) : e;
}

enum err run_txn_load_other(struct run_txn *m, struct tx *tx, int64_t run_num, struct problem *p)
{
    enum err e = run_txn_load(m, tx, run_num, p);
    if (!err_is_refusal(e))
        return e;
    return problem_set(p, err_of_other(e), "Cannot load run %lld: %s", (long long)run_num,
                       err_code(e));
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
        return problem_set(&op->problem, ERR_RUN_NOT_FOUND, "This run does not exist");
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the run");
    return load_rest(m, &op->problem);
}

enum err run_txn_find(struct run_txn *m, struct op *op, struct tx *tx, struct uuid id)
{
    enum err e = tx_write_events(tx);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot write a timeline");
    e = run_txn_read_id(m, op, &tx->read, id);
    return e == ERR_OK ? run_txn_begin_change(m, tx, &op->problem) : e;
}

/* --- saving --- */

enum err run_txn_alloc_views(struct run_txn *m)
{
    m->views = arena_alloc(&m->read_tx->arena, m->def->step_count * sizeof(*m->views));
    return m->views != NULL ? ERR_OK : ERR_NO_MEMORY;
}

/* Every change of the row appends an event, so that a reader sees by the version that the run has
 * changed. */
static enum err tell_progress(struct run_txn *m)
{
    return m->told ? ERR_OK : run_txn_add_event(m, EVENT_RUN_PROGRESSED, STR_NONE);
}

static enum err insert_row(struct run_txn *m)
{
    enum err e = m->before_insert != NULL ? m->before_insert(m) : ERR_OK;
    if (e == ERR_OK && m->run.created_at == m->tx->now_ms) /* their time is not kept twice */
        e = tx_take_first_events(m->tx, m->run.num, &m->run.first_events);
    if (e == ERR_OK)
        e = runs_insert(m->tx->db, &m->run);
    m->run.first_events = STR_NONE;
    idem_keys_saw_run(m->tx->keys, m->run.num, m->run.input.len);
    return e;
}

static enum err write_row(struct run_txn *m)
{
    assert_run(m);
    enum err e = m->is_new ? insert_row(m) : runs_update(m->tx->db, &m->run);
    if (e != ERR_OK)
        return e;
    m->is_new = m->told = false;
    return ERR_OK;
}

enum err run_txn_save(struct run_txn *m)
{
    struct buf text;
    buf_init(&text, PROGRESS_TEXT_MAX);
    progress_put(&text, &m->progress);
    m->run.progress = arena_take(&m->tx->arena, &text);
    enum err e = m->run.progress.ptr != NULL ? tell_progress(m) : ERR_NO_MEMORY;
    return e == ERR_OK ? write_row(m) : e;
}

/* --- slots --- */

enum err run_txn_take_slots(struct run_txn *m)
{
    if (m->run.parent_run >= 0)
        return ERR_OK;
    assert(!m->has_slots);
    m->has_slots = true;
    return run_slots_take(m->tx, m->tenant, &m->run);
}

enum err run_txn_free_slots(struct run_txn *m)
{
    if (m->run.parent_run >= 0)
        return ERR_OK;
    assert(m->has_slots);
    m->has_slots = false;
    return run_slots_free(m->tx, m->tenant, &m->run);
}

enum err run_txn_enter_queue(struct run_txn *m, int64_t waits_for)
{
    assert(!m->in_queue && m->run.start_at < 0);
    m->in_queue = true;
    return run_queue_enter(m->tx, m->tenant, &m->run, waits_for);
}

enum err run_txn_leave_queue(struct run_txn *m, bool admitted)
{
    if (!m->in_queue) /* it waited for its start_at */
        return ERR_OK;
    m->in_queue = false;
    return run_queue_leave(m->tx, m->tenant, &m->run, admitted);
}

/* --- timers and errors --- */

enum err run_arm(struct run_txn *m, int64_t ordinal, int64_t due_at)
{
    struct timer timer = {due_at, m->run.num, ordinal, 0, m->run.tenant};
    tx_note_due(m->tx, due_at);
    return timers_insert(m->tx->db, &timer);
}

enum err run_disarm(struct run_txn *m, int64_t ordinal, int64_t due_at)
{
    struct timer timer = {due_at, m->run.num, ordinal, 0, m->run.tenant};
    return due_at < 0 ? ERR_OK : timers_delete(m->tx->db, &timer);
}

/* A child of a run that ended is cancelled in a turn of its own. */
enum err run_txn_cancel_child_later(struct tx *tx, struct uuid child)
{
    struct run_txn m = {.read_tx = &tx->read, .tx = tx, .run = {.num = uuid_time(child)}};
    return run_arm(&m, TIMER_PARENT_OVER, tx->now_ms);
}

bool run_txn_is_large(const struct run_txn *m)
{
    return m->tx->arena.used > RUN_BYTES_PER_TURN_MAX;
}

struct str error_json(struct tx *tx, const char *code, struct str message)
{
    struct buf text;
    buf_init(&text, 16 * KIB);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_text(&o, "code", str_of(code));
    json_add_text(&o, "message", message);
    json_close(&o, '}');
    return arena_take(&tx->arena, &text);
}
