#include "api/waiting.h"

#include "base/hash_map.h"
#include "base/limits.h"

struct waiting {
    struct hash_map tenants; /* those with a request that waits */
};

struct tenant_waits {
    struct hash_entry entry;
    size_t count;
    char tenant[TENANT_ID_MAX + 1];
};

struct waiting *waiting_new(void)
{
    return calloc(1, sizeof(struct waiting));
}

void waiting_free(struct waiting *w)
{
    if (w == NULL)
        return;
    assert(w->tenants.count == 0);
    hash_map_release(&w->tenants);
    free(w);
}

static struct tenant_waits *waits_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct tenant_waits, entry);
}

static struct tenant_waits *find(const struct waiting *w, struct str tenant)
{
    struct hash_entry *e = hash_map_find(&w->tenants, hash_text(&w->tenants, tenant));
    while (e != NULL && !str_is(tenant, waits_of(e)->tenant))
        e = hash_map_find_next(e);
    return e != NULL ? waits_of(e) : NULL;
}

enum err waiting_join(struct waiting *w, struct str tenant, struct problem *p)
{
    struct tenant_waits *t = find(w, tenant);
    if (t == NULL) {
        assert(tenant.len <= TENANT_ID_MAX);
        t = calloc(1, sizeof(*t));
        if (t == NULL)
            return problem_set(p, ERR_NO_MEMORY, "No memory for the request");
        memcpy(t->tenant, tenant.ptr, tenant.len);
        hash_map_add(&w->tenants, &t->entry, hash_text(&w->tenants, tenant));
    }
    if (t->count == WAITING_PER_TENANT_MAX)
        return problem_set(p, ERR_OVERLOADED, "The tenant has %d requests that wait already",
                           WAITING_PER_TENANT_MAX);
    t->count++;
    return ERR_OK;
}

void waiting_leave(struct waiting *w, struct str tenant)
{
    struct tenant_waits *t = find(w, tenant);
    assert(t != NULL && t->count > 0);
    if (--t->count > 0)
        return;
    hash_map_remove(&w->tenants, &t->entry);
    free(t);
}
