/* Starting queued runs when their limits have room. */
#include "core/run/dispatch.h"

#include "base/limits.h"
#include "core/admission/run_limits.h"
#include "core/admission/run_slots.h"
#include "core/run/run_control.h"
#include "core/run/run_txn.h"
#include "store/run/limit_keys.h"
#include "store/run/run_queue.h"

/* What one slice may still do. */
struct budget {
    int64_t starts;
    int64_t lines;
};

/* --- rooms --- */

/* How many more runs fit under the scope. */
static enum err room_of(struct tx *tx, int64_t num, struct problem *p, int64_t *ret)
{
    struct limit_key_row scope;
    int64_t limit = -1;
    enum err e = limit_keys_get(tx->db, num, &tx->arena, &scope);
    if (e == ERR_OK)
        e = limit_in_force(&tx->read, &scope, p, &limit);
    *ret = limit < 0 ? INT64_MAX : MAX(limit - scope.active_runs, (int64_t)0);
    return e;
}

/* The first scope of the line that is full; 0 when none is. */
static enum err full_scope(struct tx *tx, const struct queue_group *line, struct problem *p,
                           int64_t *ret)
{
    struct limit_key_list scopes = limit_key_list_parse(line->scopes);
    enum err e = ERR_OK;
    *ret = 0;
    for (size_t i = 0; i < scopes.count && e == ERR_OK && *ret == 0; i++) {
        int64_t room = 0;
        e = room_of(tx, scopes.nums[i], p, &room);
        if (e == ERR_OK && room == 0)
            *ret = scopes.nums[i];
    }
    return e;
}

/* --- lines --- */

/* The scope has room: so many of its first lines wait for the tenant from now on. */
static enum err pull(struct tx *tx, int64_t tenant, int64_t scope, struct problem *p,
                     struct budget *budget)
{
    int64_t room = 0;
    bool found = true;
    struct queue_group line;
    if (dispatch_is_aside(tx, tenant))
        return ERR_OK;
    tx->dispatching = (struct dispatching){.tenant = tenant};
    enum err e = queue_groups_first(tx->db, tenant, scope, &tx->arena, &found, &line);
    if (e == ERR_OK && found) /* a scope that lines wait for exists */
        e = room_of(tx, scope, p, &room);
    while (e == ERR_OK && found && room > 0) {
        if (budget->lines-- <= 0) {
            dispatch_workflow(tx, tenant);
            return ERR_OK;
        }
        int64_t full = 0;
        e = full_scope(tx, &line, p, &full);
        if (e == ERR_OK)
            e = queue_groups_park(tx->db, line.num, full);
        if (e != ERR_OK)
            return e;
        if (full == 0)
            room--;
        if (e == ERR_OK)
            e = queue_groups_first(tx->db, tenant, scope, &tx->arena, &found, &line);
    }
    return e;
}

/* The line turns out to be blocked: the room that its other scopes have is for others. */
static enum err park(struct tx *tx, const struct queue_group *line, int64_t full, struct problem *p,
                     struct budget *budget)
{
    struct limit_key_list scopes = limit_key_list_parse(line->scopes);
    enum err e = queue_groups_park(tx->db, line->num, full);
    for (size_t i = 0; i < scopes.count && e == ERR_OK; i++) {
        if (scopes.nums[i] != full)
            e = pull(tx, line->tenant, scopes.nums[i], p, budget);
    }
    return e;
}

static enum err start(struct tx *tx, const struct queue_group *line, struct problem *p)
{
    struct run_txn m;
    struct arena_mark mark = arena_mark(&tx->arena);
    tx->dispatching.run = line->run;
    enum err e = run_txn_load(&m, tx, line->run, p);
    if (e == ERR_OK)
        e = run_txn_admit(&m);
    if (e != ERR_OK)
        return e;
    tx->dispatching.run = 0;
    arena_back_to(&tx->arena, mark);
    return ERR_OK;
}

/* Starts what the tenant has room for, in order, `most` at most. */
static enum err drain(struct tx *tx, const struct tenant *tenant, int64_t most, struct problem *p,
                      struct budget *budget)
{
    enum err e = ERR_OK;
    if (dispatch_is_aside(tx, tenant->num))
        return ERR_OK;
    while (e == ERR_OK && tenant_has_room(tenant) && most > 0 && !dispatch_is_unswept(tx, tenant)) {
        tx->dispatching = (struct dispatching){.tenant = tenant->num};
        struct queue_group line;
        bool found = false;
        e = queue_groups_first(tx->db, tenant->num, 0, &tx->arena, &found, &line);
        if (e != ERR_OK || !found)
            return e;
        if (budget->starts <= 0 || budget->lines-- <= 0) {
            dispatch_tenant(tx);
            return ERR_OK;
        }
        int64_t full = 0;
        e = full_scope(tx, &line, p, &full);
        if (e == ERR_OK && full > 0) {
            e = park(tx, &line, full, p, budget);
        } else if (e == ERR_OK) {
            e = start(tx, &line, p);
            if (e != ERR_OK)
                return e;
            budget->starts--;
            most--;
            tx->dispatch->drained_any = true;
        }
    }
    return e;
}

/* --- with an op --- */

static enum err pull_freed(struct tx *tx, const struct freed_slots *freed, struct problem *p,
                           struct budget *budget)
{
    struct tenant *tenant;
    enum err e = read_tx_tenant_num(&tx->read, freed->tenant, &tenant);
    for (size_t i = 0; i < freed->scopes.count && e == ERR_OK && tenant->queued_runs > 0; i++)
        e = pull(tx, tenant->num, freed->scopes.nums[i], p, budget);
    return e;
}

static enum err drain_freed(struct tx *tx, const struct freed_slots *freed, struct problem *p,
                            struct budget *budget)
{
    struct tenant *tenant;
    enum err e = read_tx_tenant_num(&tx->read, freed->tenant, &tenant);
    return e == ERR_OK && tenant->queued_runs > 0 ? drain(tx, tenant, INT64_MAX, p, budget) : e;
}

enum err dispatch_freed(struct tx *tx, struct problem *p)
{
    struct budget budget = {DISPATCHED_PER_OP_MAX, LINES_PER_TURN_MAX};
    enum err e = ERR_OK;
    while (tx->freed != NULL &&
           e == ERR_OK) { /* a started run may be over at once, and free more */
        const struct freed_slots *all = tx->freed;
        tx->freed = NULL;
        /* All that was freed is known before the first run starts: the best one comes first. */
        for (const struct freed_slots *f = all; f != NULL && e == ERR_OK; f = f->next)
            e = pull_freed(tx, f, p, &budget);
        for (const struct freed_slots *f = all; f != NULL && e == ERR_OK; f = f->next)
            e = drain_freed(tx, f, p, &budget);
    }
    return e;
}

/* --- in slices --- */

/* Scopes with room, although nothing was freed. */
static enum err sweep(struct tx *tx, struct problem *p, struct budget *budget)
{
    struct dispatch_state *d = tx->dispatch;
    enum err e = ERR_OK;
    while (e == ERR_OK && d->sweeping && budget->lines > 0) {
        bool found = false;
        int64_t tenant = 0;
        int64_t scope = 0;
        e = queue_groups_next_limit_key(tx->db, d->sweep_tenant, d->sweep_scope, &found, &tenant,
                                        &scope);
        if (e != ERR_OK)
            return e;
        if (!found || tenant > d->sweep_last) {
            d->sweeping = false;
            dispatch_tenant(tx); /* a whole round for what was found */
            break;
        }
        budget->lines--;
        struct dispatch_state before = *d;
        e = pull(tx, tenant, scope, p, budget);
        if (budget->lines <= 0) {
            d->sweep_tenant = before.sweep_tenant; /* the same scope again in the next slice */
            d->sweep_scope = before.sweep_scope;
        } else {
            d->sweep_tenant = tenant;
            d->sweep_scope = scope;
        }
    }
    return e;
}

/* Tenants in turn, each with as many runs as its weight. A round that starts nothing is the last.
 */
static enum err drain_in_turn(struct tx *tx, struct problem *p, struct budget *budget)
{
    struct dispatch_state *d = tx->dispatch;
    enum err e = ERR_OK;
    while (e == ERR_OK && d->draining && budget->starts > 0 && budget->lines > 0) {
        bool found = false;
        int64_t num = 0;
        e = queue_groups_next_tenant(tx->db, d->drain_tenant, &found, &num);
        if (e != ERR_OK)
            return e;
        if (!found) {
            d->draining =
                d->drained_any && d->drain_tenant > 0; /* the end of a sweep sets it again */
            d->drained_any = false;
            d->drain_tenant = 0;
            continue;
        }
        budget->lines--;
        struct tenant *tenant = NULL;
        e = read_tx_tenant_num(&tx->read, num, &tenant);
        if (e == ERR_OK)
            e = drain(tx, tenant, tenant->weight, p, budget);
        if (e != ERR_OK)
            return e;
        d->drain_tenant = num;
    }
    return e;
}

enum err dispatch_turn(struct tx *tx, struct problem *p)
{
    struct budget budget = {DISPATCHED_PER_TURN_MAX, LINES_PER_TURN_MAX};
    enum err e = sweep(tx, p, &budget);
    budget.lines = LINES_PER_TURN_MAX;
    if (e == ERR_OK)
        e = drain_in_turn(tx, p, &budget);
    /* A started run that was over at once has freed its slots again. */
    return e == ERR_OK ? dispatch_freed(tx, p) : e;
}
