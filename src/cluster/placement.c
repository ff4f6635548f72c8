/* Which shard a tenant lives in. */
#include "cluster/placement.h"

#include "base/siphash.h"

#include <stdlib.h>

static int by_name(const void *tenant, const void *moved)
{
    return strcmp(tenant, ((const struct cluster_moved *)moved)->tenant);
}

/* NULL: it was not moved. */
static const struct cluster_moved *find_moved(const struct cluster_view *view, struct str tenant)
{
    char name[TENANT_ID_MAX + 1];
    if (view->moved_count == 0 || tenant.len > TENANT_ID_MAX)
        return NULL;
    (void)snprintf(name, sizeof(name), "%.*s", STR_ARG(tenant));
    return bsearch(name, view->moved, view->moved_count, sizeof(view->moved[0]), by_name);
}

size_t placement_by_name(const struct cluster_view *view, struct str tenant)
{
    static const struct siphash_key KEY = {UINT64_C(0x7061776c2d736861),
                                           UINT64_C(0x72642d6f662d3031)};
    assert(view->hashed >= 1 && view->hashed <= view->shard_count);
    return (size_t)(siphash(KEY, tenant) % view->hashed);
}

size_t placement_of(const struct cluster_view *view, struct str tenant)
{
    const struct cluster_moved *moved = find_moved(view, tenant);
    return moved != NULL ? moved->shard : placement_by_name(view, tenant);
}

struct str placement_moved_to(const struct cluster_view *view, size_t shard, size_t number)
{
    for (size_t i = 0; i < view->moved_count; i++) {
        if (view->moved[i].shard == shard && number-- == 0)
            return str_of(view->moved[i].tenant);
    }
    return STR_NONE;
}
