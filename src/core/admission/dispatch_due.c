/* Notes which queued runs may be able to start. */
#include "core/admission/dispatch_due.h"

#include "store/run/run_queue.h"

/* --- what has to be looked at --- */

void dispatch_tenant(struct tx *tx)
{
    tx->dispatch->draining = true;
    tx->dispatch->drained_any = true; /* so that a whole round follows */
}

void dispatch_workflow(struct tx *tx, int64_t tenant)
{
    dispatch_state_sweep(tx->dispatch, tenant, tenant);
}

void dispatch_all(struct tx *tx)
{
    dispatch_state_forget(tx->dispatch);
}

bool dispatch_is_due(const struct tx *tx)
{
    return tx->dispatch->sweeping || tx->dispatch->draining;
}

bool dispatch_is_unswept(const struct tx *tx, const struct tenant *tenant)
{
    const struct dispatch_state *d = tx->dispatch;
    return d->sweeping && tenant->num >= d->sweep_tenant && tenant->num <= d->sweep_last;
}

bool tenant_has_room(const struct tenant *tenant)
{
    return tenant->max_concurrent_runs < 0 || tenant->active_runs < tenant->max_concurrent_runs;
}

enum err dispatch_concerns(struct tx *tx, const struct tenant *tenant, bool *ret)
{
    struct queue_group group;
    bool aside = dispatch_is_aside(tx, tenant->num);
    *ret = (dispatch_is_due(tx) || aside) && tenant->queued_runs > 0 && tenant_has_room(tenant);
    if (!*ret || aside || dispatch_is_unswept(tx, tenant))
        return ERR_OK;
    return queue_groups_first(tx->db, tenant->num, 0, &tx->arena, ret, &group);
}

/* --- tenants that are set aside --- */

bool dispatch_is_aside(const struct tx *tx, int64_t tenant)
{
    for (size_t i = 0; i < tx->aside_count; i++) {
        if (tx->asides[i].tenant == tenant)
            return true;
    }
    return false;
}

static void take_back(struct tx *tx, size_t i)
{
    dispatch_workflow(tx, tx->asides[i].tenant);
    tx->asides[i] = tx->asides[--tx->aside_count];
}

void dispatch_set_aside(struct tx *tx, int64_t tenant, int64_t until_ms)
{
    if (dispatch_is_aside(tx, tenant))
        return;
    if (tx->aside_count == ASIDE_TENANTS_MAX)
        take_back(tx, 0);
    tx->asides[tx->aside_count++] = (struct aside_tenant){tenant, until_ms};
}

int64_t dispatch_aside_until(const struct tx *tx)
{
    int64_t first = -1;
    for (size_t i = 0; i < tx->aside_count; i++)
        first = first < 0 ? tx->asides[i].until_ms : MIN(first, tx->asides[i].until_ms);
    return first;
}

void dispatch_bring_back(struct tx *tx, int64_t now_ms)
{
    for (size_t i = tx->aside_count; i-- > 0;) {
        if (tx->asides[i].until_ms <= now_ms)
            take_back(tx, i);
    }
}
