/* One transaction and what it has loaded. */
#include "engine/tx.h"

#include "base/limits.h"
#include "engine/definitions.h"
#include "store/tenants.h"

enum { TX_ARENA_MAX = 256 * MIB };

struct tx_tenant {
    struct tenant tenant; /* first, so that a tenant's address finds its entry */
    struct tx_tenant *next;
    bool dirty;
};

enum err tx_init(struct tx *tx, struct db *db, const struct env *env)
{
    *tx = (struct tx){.db = db, .env = env, .next_due = -1};
    arena_init(&tx->arena, TX_ARENA_MAX);
    tx->definitions = definitions_new();
    return tx->definitions != NULL ? ERR_OK : ERR_NO_MEMORY;
}

void tx_release(struct tx *tx)
{
    tx_forget(tx);
    definitions_free(tx->definitions);
    arena_release(&tx->arena);
}

void tx_start(struct tx *tx)
{
    tx_forget(tx);
    tx->now_ms = env_now_ms(tx->env);
}

void tx_forget(struct tx *tx)
{
    while (tx->wakes != NULL) {
        struct wake *old = tx->wakes;
        tx->wakes = old->next;
        free(old);
    }
    tx->tenants = NULL;
    tx->next_due = -1;
    arena_clear(&tx->arena);
    definitions_trim(tx->definitions);
}

enum err tx_flush(struct tx *tx)
{
    enum err e = ERR_OK;
    for (struct tx_tenant *t = tx->tenants; t != NULL && e == ERR_OK; t = t->next) {
        if (t->dirty)
            e = tenants_update_counters(tx->db, &t->tenant);
        t->dirty = false;
    }
    return e;
}

struct wake *tx_take_wakes(struct tx *tx)
{
    struct wake *taken = tx->wakes;
    tx->wakes = NULL;
    return taken;
}

/* --- tenants --- */

static struct tx_tenant *remember(struct tx *tx)
{
    struct tx_tenant *t = arena_alloc(&tx->arena, sizeof(*t));
    if (t != NULL) {
        t->next = tx->tenants;
        tx->tenants = t;
    }
    return t;
}

enum err tx_tenant(struct tx *tx, struct op *op, struct tenant **ret)
{
    struct str id = op->caller.tenant;
    /* "*" has a row as soon as it is needed: the keys of callers that speak for all tenants belong to it. */
    bool may_be_new = op->caller.creates_tenant || str_is(id, "*");
    for (struct tx_tenant *t = tx->tenants; t != NULL; t = t->next) {
        if (str_eq(t->tenant.id, id) && (t->tenant.num != 0 || may_be_new)) {
            op->tenant_num = t->tenant.num;
            *ret = &t->tenant;
            return ERR_OK;
        }
    }
    struct tenant found;
    bool exists = false;
    enum err e = tenants_find(tx->db, id, &tx->arena, &exists, &found);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "cannot read the tenant");
    if (!exists && !may_be_new)
        return problem_set(&op->problem, ERR_TENANT_NOT_FOUND, "there is no tenant \"%.*s\"",
                           STR_ARG(id));
    if (!exists) {
        struct str kept = arena_str(&tx->arena, id);
        if (kept.ptr == NULL)
            return problem_set(&op->problem, ERR_NO_MEMORY, "no memory for the tenant");
        found = tenant_default(kept, tx->now_ms);
    }
    struct tx_tenant *t = remember(tx);
    if (t == NULL)
        return problem_set(&op->problem, ERR_NO_MEMORY, "no memory for the tenant");
    t->tenant = found;
    op->tenant_num = found.num;
    *ret = &t->tenant;
    return ERR_OK;
}

enum err tx_tenant_num(struct tx *tx, int64_t num, struct tenant **ret)
{
    for (struct tx_tenant *t = tx->tenants; t != NULL; t = t->next) {
        if (t->tenant.num == num) {
            *ret = &t->tenant;
            return ERR_OK;
        }
    }
    struct tx_tenant *t = remember(tx);
    if (t == NULL)
        return ERR_NO_MEMORY;
    bool exists = false;
    enum err e = tenants_find_num(tx->db, num, &tx->arena, &exists, &t->tenant);
    if (e == ERR_OK && !exists)
        e = ERR_INTERNAL;
    if (e == ERR_OK)
        *ret = &t->tenant;
    else
        tx->tenants = t->next;
    return e;
}

enum err tx_tenant_ensure(struct tx *tx, struct tenant *t)
{
    if (t->num != 0)
        return ERR_OK;
    return tenants_insert(tx->db, t);
}

void tx_tenant_touch(struct tx *tx, struct tenant *t)
{
    (void)tx;
    struct tx_tenant *entry = CONTAINER_OF(t, struct tx_tenant, tenant);
    assert(t->num != 0);
    entry->dirty = true;
}

enum err tx_definition(struct tx *tx, int64_t tenant, struct str workflow_id, int64_t version,
                       struct problem *p, const struct definition **ret)
{
    return definitions_get(tx->definitions, tx->db, tenant, workflow_id, version, p, ret);
}

/* --- wake-ups --- */

static struct wake *wake_new(struct tx *tx, int64_t tenant)
{
    struct wake *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->tenant = tenant;
    w->next = tx->wakes;
    tx->wakes = w;
    return w;
}

enum err tx_wake_queue(struct tx *tx, int64_t tenant, struct str queue)
{
    if (!tx->wants_wakes)
        return ERR_OK;
    struct wake *w = wake_new(tx, tenant);
    if (w == NULL)
        return ERR_NO_MEMORY;
    assert(queue.len < sizeof(w->queue));
    memcpy(w->queue, queue.ptr, queue.len);
    return ERR_OK;
}

enum err tx_wake_run(struct tx *tx, int64_t tenant, struct uuid run_id)
{
    if (!tx->wants_wakes)
        return ERR_OK;
    struct wake *w = wake_new(tx, tenant);
    if (w == NULL)
        return ERR_NO_MEMORY;
    w->run_over = true;
    w->run_id = run_id;
    return ERR_OK;
}
