/* The front of a node. */
#include "cluster/node_front.h"

static size_t shard_of(const void *ctx, struct str tenant)
{
    return node_shard_of(ctx, tenant);
}

static struct front_owner owner_of(const void *ctx, size_t shard)
{
    struct node_shard s = node_shard_at(ctx, shard);
    if (s.answers)
        return (struct front_owner){.api = s.api};
    if (s.state != SHARD_AWAY)
        return (struct front_owner){.api = NULL};
    return (struct front_owner){.node = s.owner, .url = s.url, .session = s.session};
}

static uint64_t view(const void *ctx)
{
    return node_view(ctx);
}

static void refresh(const void *ctx)
{
    node_refresh((struct node *)(uintptr_t)ctx);
}

static int64_t now_ms(const void *ctx)
{
    return node_now_ms(ctx);
}

struct front_cluster node_front_cluster(struct node *node)
{
    return (struct front_cluster){node,  node_shard_count(node), shard_of, owner_of, view, refresh,
                                  now_ms};
}
