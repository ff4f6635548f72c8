/* One transaction of background work. */
#include "core/background/work.h"

#include "core/usecase/execute.h"

static enum err attempt(struct work_env *w, struct tx *tx, bool dispatches_later, work_fn *fn,
                        void *ctx, struct problem *p, bool *ret_dispatch_failed)
{
    problem_clear(p);
    w->tenant = w->run = 0;
    tx_start(tx, w->now_ms);
    tx->dispatches_later = dispatches_later;
    tx->dispatching = (struct dispatching){0};
    enum err e = db_begin(tx->db);
    if (e == ERR_OK)
        e = tx_own_error(tx, fn(ctx, tx, p));
    if (e == ERR_OK)
        e = tx_commit(tx);
    *ret_dispatch_failed = e != ERR_OK && tx->dispatch_failed;
    if (e == ERR_OK)
        return ERR_OK;
    db_rollback(tx->db);
    w->tenant = tx->dispatching.tenant;
    w->run = tx->dispatching.run;
    tx_rolled_back(tx);
    return e;
}

enum err work_transaction(struct work_env *w, struct tx *tx, work_fn *fn, void *ctx,
                          struct problem *p)
{
    bool dispatch_failed = false;
    enum err e = attempt(w, tx, false, fn, ctx, p, &dispatch_failed);
    if (dispatch_failed && !err_is_outage(e))
        e = attempt(w, tx, true, fn, ctx, p, &dispatch_failed);
    return e;
}
