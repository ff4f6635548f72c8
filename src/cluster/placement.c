/* Which shard a tenant lives in. */
#include "cluster/placement.h"

#include "base/siphash.h"

size_t placement_of(const struct cluster_view *view, struct str tenant)
{
    static const struct siphash_key KEY = {UINT64_C(0x7061776c2d736861),
                                           UINT64_C(0x72642d6f662d3031)};
    for (size_t i = 0; i < view->moved_count; i++) {
        if (str_is(tenant, view->moved[i].tenant))
            return view->moved[i].shard;
    }
    assert(view->hashed >= 1 && view->hashed <= view->shard_count);
    return (size_t)(siphash(KEY, tenant) % view->hashed);
}

struct str placement_moved_to(const struct cluster_view *view, size_t shard)
{
    for (size_t i = 0; i < view->moved_count; i++) {
        if (view->moved[i].shard == shard)
            return str_of(view->moved[i].tenant);
    }
    return STR_NONE;
}
