/* Creating, admitting, pausing and ending runs. */
#include "core/run/run_control.h"

#include "base/limits.h"
#include "core/run/run_advance.h"

enum err run_txn_create(struct run_txn *m, struct problem *p)
{
    enum err e = run_txn_begin(m, RUN_PENDING);
    if (e == ERR_OK)
        e = run_txn_take_slots(m);
    if (e == ERR_OK)
        e = run_txn_set_deadline(m);
    if (e == ERR_OK)
        e = run_txn_advance(m);
    return run_txn_stored(e, p);
}

enum err run_txn_create_from(struct run_txn *m, const struct run_txn *from, const bool *again,
                             copy_step_fn *copy, struct problem *p)
{
    enum err e = run_txn_begin(m, RUN_PENDING);
    if (e == ERR_OK)
        e = run_txn_take_slots(m);
    for (size_t i = 0; i < m->def->step_count && e == ERR_OK; i++) {
        enum step_status was = from->progress.steps[i].status;
        if (!again[i] && (was == STEP_IS_SUCCEEDED || was == STEP_IS_SKIPPED))
            e = copy(m, from, i);
    }
    if (e != ERR_OK)
        return run_txn_stored(e, p);
    m->views = NULL; /* copied jobs are read from their rows */
    e = run_txn_set_deadline(m);
    if (e == ERR_OK)
        e = run_txn_advance(m);
    return run_txn_stored(e, p);
}

/* --- control --- */

enum err run_txn_admit(struct run_txn *m)
{
    enum err e = run_txn_apply(m, RUN_ON_ADMIT);
    if (e != ERR_OK)
        return e;
    m->run.start_at = -1;
    e = run_txn_add_event(m, EVENT_RUN_ADMITTED, STR_NONE);
    if (e == ERR_OK)
        e = run_txn_set_deadline(m);
    if (e != ERR_OK)
        return e;
    tx_observe_queue_wait(m->tx, m->tenant, m->tx->now_ms - m->run.created_at);
    return run_txn_advance(m);
}

enum err run_txn_fail(struct run_txn *m)
{
    assert(m->run.error.ptr != NULL && m->run.start_at >= 0);
    enum err e = run_txn_apply(m, RUN_ON_FAIL);
    if (e != ERR_OK)
        return e;
    m->run.start_at = -1;
    return run_txn_save(m);
}

struct str run_txn_control_note(struct run_txn *m, struct str actor, struct str reason)
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

static void stop_steps(struct progress *p)
{
    for (size_t i = 0; i < p->count; i++)
        advance_stopped(p, i);
}

enum err run_txn_cancel(struct run_txn *m, struct str actor, struct str reason)
{
    bool delayed = m->run.status == RUN_QUEUED && m->run.start_at >= 0;
    m->end_note = run_txn_control_note(m, actor, reason);
    if (m->end_note.ptr == NULL)
        return ERR_NO_MEMORY;
    enum err e = run_txn_apply(m, RUN_ON_CANCEL);
    m->end_note = STR_NONE;
    if (e == ERR_OK && delayed)
        e = run_disarm(m, TIMER_RUN, m->run.start_at);
    if (e != ERR_OK)
        return e;
    stop_steps(&m->progress);
    return run_txn_save(m);
}

/* A queued run has no jobs: it can be ended although its definition cannot be loaded. */
static enum err load_to_end(struct run_txn *m, struct tx *tx, int64_t run_num, struct problem *p)
{
    enum err e = run_txn_load(m, tx, run_num, p);
    if (e == ERR_OK || m->tenant == NULL || m->run.status != RUN_QUEUED)
        return e;
    m->tx = tx;
    m->progress = (struct progress){0};
    m->in_queue = m->run.start_at < 0;
    return ERR_OK;
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
    e = run_txn_apply(&m, RUN_ON_GIVE_UP);
    if (e == ERR_OK && delayed)
        e = run_disarm(&m, TIMER_RUN, m.run.start_at);
    if (e != ERR_OK)
        return e;
    stop_steps(&m.progress);
    return m.progress.count > 0 ? run_txn_save(&m) : runs_update(tx->db, &m.run);
}

enum err run_txn_control(struct run_txn *m, enum run_event on, struct str actor)
{
    struct str note = run_txn_control_note(m, actor, STR_NONE);
    if (note.ptr == NULL)
        return ERR_NO_MEMORY;
    enum err e = run_txn_apply(m, on);
    if (e == ERR_OK)
        e = run_txn_add_event(m, on == RUN_ON_PAUSE ? EVENT_RUN_PAUSED : EVENT_RUN_RESUMED, note);
    return e == ERR_OK ? run_txn_advance(m) : e;
}
