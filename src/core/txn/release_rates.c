/* How fast slots have been freeing. When there are as many as are remembered, the one that was not
 * noted for the longest time is forgotten. */
#include "core/txn/release_rates.h"

#include "base/hash_map.h"
#include "base/pages.h"

enum { REMEMBERED_MAX = 4096 };

struct remembered {
    struct hash_entry entry;
    int64_t tenant;
    int64_t scope;
    struct release_rate rate;
};

struct release_rates {
    struct hash_map map; /* by tenant and scope */
    struct remembered remembered[REMEMBERED_MAX];
};

struct release_rates *release_rates_new(void)
{
    return pages_new(sizeof(struct release_rates));
}

void release_rates_free(struct release_rates *rates)
{
    if (rates == NULL)
        return;
    hash_map_release(&rates->map);
    pages_free(rates, sizeof(*rates));
}

static uint64_t hash_of(const struct release_rates *rates, int64_t tenant, int64_t scope)
{
    return hash_with(hash_number(&rates->map, tenant), (uint64_t)scope);
}

static struct remembered *find(const struct release_rates *rates, int64_t tenant, int64_t scope)
{
    struct hash_entry *e = hash_map_find(&rates->map, hash_of(rates, tenant, scope));
    for (; e != NULL; e = hash_map_find_next(e)) {
        struct remembered *r = CONTAINER_OF(e, struct remembered, entry);
        if (r->tenant == tenant && r->scope == scope)
            return r;
    }
    return NULL;
}

static struct remembered *add(struct release_rates *rates, int64_t tenant, int64_t scope)
{
    struct remembered *r = &rates->remembered[rates->map.count % REMEMBERED_MAX];
    if (rates->map.count == REMEMBERED_MAX) {
        r = CONTAINER_OF(rates->map.oldest, struct remembered, entry);
        hash_map_remove(&rates->map, &r->entry);
    }
    *r = (struct remembered){.tenant = tenant, .scope = scope, .rate = release_rate_unknown()};
    hash_map_add(&rates->map, &r->entry, hash_of(rates, tenant, scope));
    return r;
}

void release_rates_note(struct release_rates *rates, int64_t tenant, int64_t scope, int64_t now_ms)
{
    struct remembered *r = find(rates, tenant, scope);
    if (r == NULL)
        r = add(rates, tenant, scope);
    hash_map_touch(&rates->map, &r->entry);
    release_rate_note(&r->rate, now_ms);
}

int64_t release_rates_retry_after_s(const struct release_rates *rates, int64_t tenant,
                                    int64_t scope, int64_t now_ms)
{
    const struct remembered *r = find(rates, tenant, scope);
    struct release_rate rate = r != NULL ? r->rate : release_rate_unknown();
    return release_rate_retry_after_s(&rate, now_ms);
}
