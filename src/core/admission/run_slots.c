/* The slots of a run and its place in the queue. */
#include "core/admission/run_slots.h"

#include "core/txn/release_rates.h"
#include "store/run/run_queue.h"

/* Adds to every scope of the run. */
static enum err count_scopes(struct tx *tx, const struct limit_key_list *scopes, int64_t active,
                             int64_t queued)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < scopes->count && e == ERR_OK; i++)
        e = limit_keys_count(tx->db, scopes->nums[i], active, queued);
    return e;
}

/* A run that the index of runs has passed is in `holding` exactly while it holds a slot. */
static enum err keep_holding(struct tx *tx, const struct run *run, bool holds)
{
    int64_t through;
    enum err e = tx_runs_through(tx, &through);
    if (e != ERR_OK)
        return e;
    if (run->num > through) {
        recent_runs_hold(tx->recent_runs, run->num, holds);
        return ERR_OK;
    }
    return holds ? active_runs_insert(tx->db, run->tenant, run->num)
                 : active_runs_delete(tx->db, run->tenant, run->num);
}

static enum err note_freed(struct tx *tx, int64_t tenant, const struct limit_key_list *scopes)
{
    struct freed_slots *freed = arena_alloc(&tx->notes, sizeof(*freed));
    if (freed == NULL)
        return ERR_NO_MEMORY;
    *freed = (struct freed_slots){tx->freed, tenant, *scopes};
    tx->freed = freed;
    return ERR_OK;
}

enum err run_slots_take(struct tx *tx, struct tenant *tenant, const struct run *run)
{
    assert(tenant->num == run->tenant);
    struct limit_key_list scopes = limit_key_list_parse(run->scopes);
    tenant->active_runs++;
    tx_tenant_touch(tx, tenant);
    enum err e = keep_holding(tx, run, true);
    if (e == ERR_OK)
        e = count_scopes(tx, &scopes, 1, 0);
    for (size_t i = 0; i < scopes.count && e == ERR_OK; i++)
        e = slots_insert(tx->db, scopes.nums[i], run->num);
    return e;
}

enum err run_slots_free(struct tx *tx, struct tenant *tenant, const struct run *run)
{
    assert(tenant->num == run->tenant);
    if (tenant->active_runs <= 0)
        return ERR_DAMAGED; /* the counter is damaged, and the doctor must be able to start */
    struct limit_key_list scopes = limit_key_list_parse(run->scopes);
    tenant->active_runs--;
    tx_tenant_touch(tx, tenant);
    release_rates_note(tx->release_rates, tenant->num, 0, tx->now_ms);
    enum err e = keep_holding(tx, run, false);
    for (size_t i = 0; i < scopes.count && e == ERR_OK; i++) {
        release_rates_note(tx->release_rates, tenant->num, scopes.nums[i], tx->now_ms);
        e = slots_delete(tx->db, scopes.nums[i], run->num);
    }
    if (e == ERR_OK)
        e = count_scopes(tx, &scopes, -1, 0);
    return e == ERR_OK ? note_freed(tx, tenant->num, &scopes) : e;
}

enum err run_slots_note_room(struct tx *tx, int64_t tenant)
{
    static const struct limit_key_list NONE = {.count = 0};
    return note_freed(tx, tenant, &NONE);
}

enum err run_queue_enter(struct tx *tx, struct tenant *tenant, const struct run *run,
                         int64_t waits_for)
{
    assert(tenant->num == run->tenant);
    struct limit_key_list scopes = limit_key_list_parse(run->scopes);
    tenant->queued_runs++;
    tx_tenant_touch(tx, tenant);
    enum err e = count_scopes(tx, &scopes, 0, 1);
    if (e == ERR_OK)
        e = queue_insert(tx->db, tenant->num, run->scopes, waits_for, -run->priority, run->num);
    return e;
}

enum err run_queue_leave(struct tx *tx, struct tenant *tenant, const struct run *run, bool admitted)
{
    assert(tenant->num == run->tenant);
    if (tenant->queued_runs <= 0)
        return ERR_DAMAGED;
    struct limit_key_list scopes = limit_key_list_parse(run->scopes);
    tenant->queued_runs--;
    tx_tenant_touch(tx, tenant);
    enum err e = queue_delete(tx->db, tenant->num, run->scopes, -run->priority, run->num);
    if (admitted) /* it counts as active first, so that a scope is never without a run meanwhile */
        return e == ERR_OK ? count_scopes(tx, &scopes, 0, -1) : e;
    if (e == ERR_OK)
        e = count_scopes(tx, &scopes, 0, -1);
    /* Its line may have been the one that room was kept for. */
    return e == ERR_OK ? note_freed(tx, tenant->num, &scopes) : e;
}
