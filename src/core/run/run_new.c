/* Making runs. */
#include "core/run/run_new.h"

#include "base/limits.h"

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

enum err run_txn_begin(struct run_txn *m, enum run_status status)
{
    assert(m->tenant->num > 0 && m->def != NULL);
    m->is_new = true;
    m->run.tenant = m->tenant->num;
    m->run.status = status;
    m->run.revision = 1;
    if (m->progress.steps == NULL &&
        !progress_init(&m->progress, m->def->step_count, &m->tx->arena))
        return ERR_NO_MEMORY;
    enum err e = run_txn_alloc_views(m);
    if (e == ERR_OK)
        e = tx_new_run(m->tx, m->run.tenant, &m->run.id, &m->run.num);
    return e == ERR_OK ? tell_created(m) : e;
}

enum err run_txn_stored(enum err e, struct problem *p)
{
    return e == ERR_OK ? ERR_OK : problem_set(p, e, "Cannot store the run");
}

enum err run_txn_set_deadline(struct run_txn *m)
{
    if (m->def->timeout_ms < 0)
        return ERR_OK;
    m->run.deadline_at = m->tx->now_ms + m->def->timeout_ms;
    return run_arm(m, TIMER_RUN, m->run.deadline_at);
}

enum err run_txn_create_queued(struct run_txn *m, int64_t waits_for, struct problem *p)
{
    enum err e = run_txn_begin(m, RUN_QUEUED);
    if (e == ERR_OK)
        e = run_txn_enter_queue(m, waits_for);
    if (e == ERR_OK)
        e = run_txn_add_event(m, EVENT_RUN_QUEUED, STR_NONE);
    if (e == ERR_OK)
        e = run_txn_save(m);
    return run_txn_stored(e, p);
}

enum err run_txn_create_delayed(struct run_txn *m, struct problem *p)
{
    assert(m->run.start_at >= 0);
    enum err e = run_txn_begin(m, RUN_QUEUED);
    if (e == ERR_OK)
        e = run_arm(m, TIMER_RUN, m->run.start_at);
    if (e == ERR_OK)
        e = run_txn_add_event(m, EVENT_RUN_SCHEDULED, STR_NONE);
    if (e == ERR_OK)
        e = run_txn_save(m);
    return run_txn_stored(e, p);
}

enum err run_txn_create_child(struct run_txn *m, struct problem *p)
{
    assert(m->run.parent_run > 0);
    enum err e = run_txn_begin(m, RUN_PENDING);
    if (e == ERR_OK)
        e = run_txn_set_deadline(m);
    if (e == ERR_OK)
        e = run_arm(m, TIMER_GO_ON, m->tx->now_ms);
    if (e == ERR_OK)
        e = run_txn_save(m);
    if (e == ERR_OK)
        e = tx_count_admission(m->tx, m->tenant, "child", STR("admitted"), 0);
    return run_txn_stored(e, p);
}
