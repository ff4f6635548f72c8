/* What the steps of a run look like to its readers. */
#include "core/run/run_view.h"

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
