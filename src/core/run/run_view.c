/* What the steps of a run look like to its readers. */
#include "core/run/run_view.h"

#include "base/limits.h"
#include "core/run/run_values.h"

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
    enum err e = fresh ? ERR_OK : run_txn_alloc_views(m);
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

/* --- ends --- */

static bool is_small(const struct run_txn *m)
{
    bool small = m->def->step_count <= SHOWN_STEPS_MAX;
    for (size_t i = 0; i < m->def->step_count && small; i++)
        small = !m->progress.steps[i].is_map;
    return small;
}

static enum err render_ended(struct run_txn *m, struct buf *out)
{
    const struct step_view *views;
    enum err e = run_txn_show(m, &views);
    if (e != ERR_OK)
        return e;
    struct json_out o = json_out_to(out);
    render_run(&o, NULL, &m->run, m->def, views);
    return ERR_OK;
}

static enum err show_ended(struct tx *tx, struct effect *ended, struct problem *p, struct buf *out)
{
    struct run_txn m;
    enum err e = run_txn_read(&m, &tx->read, uuid_time(ended->decided.key), p);
    if (e != ERR_OK || !run_has_ended(m.run.status) || !is_small(&m))
        return e;
    e = render_ended(&m, out);
    if (e != ERR_OK || !buf_ok(out))
        return e;
    struct str shown = buf_str(out);
    if (!arena_keep(&tx->effects.memory, &shown))
        return ERR_OK;
    ended->decided.shown = shown;
    ended->decided.version = m.run.version;
    return ERR_OK;
}

enum err run_show_ended(struct tx *tx, struct effect *ended)
{
    struct arena_mark mark = arena_mark(&tx->arena);
    struct problem p;
    struct buf out;
    problem_init(&p);
    buf_init(&out, SHOWN_BYTES_MAX);
    enum err e = show_ended(tx, ended, &p, &out);
    buf_release(&out);
    problem_release(&p);
    read_tx_drop_json(&tx->read);
    arena_back_to(&tx->arena, mark);
    return err_is_outage(e) && e != ERR_NO_MEMORY ? e : ERR_OK;
}
