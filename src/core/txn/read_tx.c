/* A transaction that only reads. */
#include "core/txn/read_tx.h"

#include "base/limits.h"
#include "domain/expr/expr.h"
#include "store/tenants.h"

enum { TENANTS_MAX = 4096 }; /* kept from one transaction to the next */

struct kept_json {
    struct kept_json *next;
    struct json *json;
};

enum err read_tx_init(struct read_tx *tx, struct db *db)
{
    *tx = (struct read_tx){.db = db, .remembers = db_is_only_writer(db)};
    arena_init(&tx->arena, OP_BYTES_MAX);
    arena_init(&tx->notes, OP_BYTES_MAX);
    bool ok = true;
#define X(member, type, until, functions) \
    tx->member = functions##_new();       \
    ok &= tx->member != NULL;
    READ_MEMORY(X)
#undef X
    return ok ? ERR_OK : ERR_NO_MEMORY;
}

void read_tx_release(struct read_tx *tx)
{
    read_tx_drop_json(tx);
#define X(member, type, until, functions) functions##_free(tx->member);
    READ_MEMORY(X)
#undef X
    expr_free(tx->expr);
    arena_release(&tx->arena);
    arena_release(&tx->notes);
}

void read_tx_clear(struct read_tx *tx)
{
    read_tx_drop_json(tx);
    arena_clear(&tx->arena);
    arena_clear(&tx->notes);
}

void read_tx_forget(struct read_tx *tx, enum memory_until end)
{
#define X(member, type, until, functions) \
    if ((until) <= end)                   \
        functions##_forget(tx->member);
    READ_MEMORY(X)
#undef X
}

void read_tx_start(struct read_tx *tx, int64_t now_ms)
{
    read_tx_clear(tx);
    if (!tx->remembers || tenant_cache_count(tx->tenants) > TENANTS_MAX)
        read_tx_forget(tx, UNTIL_STALE);
    definition_cache_trim(tx->definitions);
    tx->now_ms = now_ms;
}

/* --- what a store has --- */

/* In the cache, NULL if it has to be read. A transaction that counts knows all tenants whose rows
 * are behind by then. */
static enum err find_cached(struct read_tx *tx, struct str id, int64_t num, struct tenant **ret)
{
    enum err e = tx->counts ? tenant_cache_read_log(tx->tenants, tx->db, &tx->arena) : ERR_OK;
    if (e == ERR_OK)
        *ret = id.ptr != NULL ? tenant_cache_find(tx->tenants, id)
                              : tenant_cache_find_num(tx->tenants, num);
    return e;
}

enum err read_tx_counters(struct read_tx *tx, struct tenant *t)
{
    return tx->counts || t->num == 0 ? ERR_OK : tenants_read_counters(tx->db, t);
}

/* Reads the tenant into the cache. *ret is NULL when it is not stored and may not be new. */
static enum err load_tenant(struct read_tx *tx, struct op *op, bool may_be_new, struct tenant **ret)
{
    struct tenant read = tenant_default(op->caller.tenant, tx->now_ms);
    bool exists = false;
    enum err e = tenants_find(tx->db, op->caller.tenant, &tx->arena, &exists, &read);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the tenant");
    *ret = NULL;
    if (!exists && !may_be_new)
        return ERR_OK;
    *ret = tenant_cache_add(tx->tenants, &read);
    return *ret != NULL ? ERR_OK
                        : problem_set(&op->problem, ERR_NO_MEMORY, "No memory for the tenant");
}

enum err read_tx_tenant(struct read_tx *tx, struct op *op, struct tenant **ret)
{
    struct str id = op->caller.tenant;
    if (op->tenant != NULL && str_eq(op->tenant->id, id)) {
        op->tenant_num = op->tenant->num;
        *ret = op->tenant;
        return ERR_OK;
    }
    /* "*" gets a row as soon as one is needed: the keys of callers that act for all tenants belong
     * to it. */
    bool may_be_new = op->caller.creates_tenant || str_is(id, "*");
    struct tenant *t = NULL;
    enum err e = find_cached(tx, id, 0, &t);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the tenant");
    if (t == NULL)
        e = load_tenant(tx, op, may_be_new, &t);
    if (e != ERR_OK)
        return e;
    if (t == NULL || (t->num == 0 && !may_be_new))
        return problem_set(&op->problem, ERR_TENANT_NOT_FOUND, "Tenant \"%.*s\" does not exist",
                           STR_ARG(id));
    if (t->num == 0)
        t->created_at = t->updated_at = tx->now_ms;
    op->tenant_num = t->num;
    *ret = op->tenant = t;
    return ERR_OK;
}

enum err read_tx_tenant_num(struct read_tx *tx, int64_t num, struct tenant **ret)
{
    struct tenant *t = NULL;
    enum err e = find_cached(tx, STR_NONE, num, &t);
    if (e != ERR_OK || t != NULL) {
        *ret = t;
        return e;
    }
    struct tenant read;
    bool exists = false;
    e = tenants_find_num(tx->db, num, &tx->arena, &exists, &read);
    if (e != ERR_OK)
        return e;
    if (!exists)
        return ERR_INTERNAL;
    t = tenant_cache_add(tx->tenants, &read);
    if (t == NULL)
        return ERR_NO_MEMORY;
    *ret = t;
    return ERR_OK;
}

enum err read_tx_newest(struct read_tx *tx, int64_t tenant, struct str workflow_id,
                        struct workflow_newest *ret)
{
    return newest_cache_find(tx->newest, tx->db, tenant, workflow_id, ret);
}

enum err read_tx_definition(struct read_tx *tx, int64_t tenant, struct str workflow_id,
                            int64_t version, struct problem *p, const struct definition **ret)
{
    return definition_cache_get(tx->definitions, tx->db, tenant, workflow_id, version, p, ret);
}

/* --- expressions --- */

struct expr *read_tx_expr(struct read_tx *tx)
{
    if (tx->expr == NULL)
        tx->expr = expr_new();
    return tx->expr;
}

bool read_tx_keep_json(struct read_tx *tx, struct json *json)
{
    struct kept_json *kept = arena_alloc(&tx->notes, sizeof(*kept));
    if (kept == NULL) {
        json_free(json);
        return false;
    }
    *kept = (struct kept_json){tx->kept, json};
    tx->kept = kept;
    return true;
}

void read_tx_drop_json(struct read_tx *tx)
{
    for (; tx->kept != NULL; tx->kept = tx->kept->next)
        json_free(tx->kept->json);
}
