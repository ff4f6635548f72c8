/* What the api asks of its node. */
#include "cluster/node.h"
#include "cluster/node_parts.h"
#include "cluster/placement.h"

static struct engine *engine_at(void *ctx, size_t i)
{
    const struct node *node = ctx;
    for (const struct host *h = node->hosts; h != NULL; h = h->next) {
        bool open = h->state == HOST_SERVING || h->state == HOST_LEAVING;
        if (open && i-- == 0)
            return h->engine;
    }
    return NULL;
}

static enum err ready(void *ctx, struct problem *p)
{
    const struct node *node = ctx;
    const struct cluster_view *view = directory_view(node->directory);
    if (node->stopping)
        return problem_set(p, ERR_DRAINING, "The server is shutting down");
    if (env_mono_ms(node->config.api.env) - view->mono_ms > NODE_LEASE_MS)
        return problem_set(p, ERR_STORE_BUSY, "The directory of the cluster cannot be read");
    return ERR_OK;
}

static const char *state_of(const struct cluster_node *n)
{
    if (!cluster_node_lives(n))
        return "lost";
    return n->stopping ? "stopping" : n->draining ? "draining" : "live";
}

static bool node_at(void *ctx, size_t i, struct api_cluster_node *ret)
{
    const struct node *node = ctx;
    const struct cluster_view *view = directory_view(node->directory);
    if (i >= view->node_count)
        return false;
    const struct cluster_node *n = &view->nodes[i];
    *ret = (struct api_cluster_node){
        .name = str_of(n->name),
        .url = str_of(n->url),
        .state = state_of(n),
        .lease_ms = MAX(n->lease_ms, INT64_C(0)),
    };
    for (size_t s = 0; s < view->shard_count; s++)
        ret->shards += view->shards[s].owner == (int)i;
    return true;
}

/* HOSTS/DATABASE of a URL. */
static struct str without_credentials(const char *url)
{
    const char *from = strstr(url, "://") + strlen("://");
    struct str rest = {from, strcspn(from, "?")};
    for (size_t i = rest.len; i-- > 0;) {
        if (rest.ptr[i] == '@')
            return (struct str){rest.ptr + i + 1, rest.len - i - 1};
    }
    return rest;
}

static bool shard_at(void *ctx, size_t i, struct api_cluster_shard *ret)
{
    static const char *const STATES[] = {
        [SHARD_OPENING] = "opening", [SHARD_HERE] = "serving", [SHARD_LEAVING] = "leaving"};
    const struct node *node = ctx;
    if (i >= node_shard_count(node))
        return false;
    struct node_shard s = node_shard_at(node, i);
    *ret = (struct api_cluster_shard){.owner = s.owner, .epoch = s.epoch};
    const struct cluster_view *view = directory_view(node->directory);
    if (view->shards[i].place >= 0)
        ret->database = without_credentials(view->places[view->shards[i].place]);
    if (s.state != SHARD_AWAY)
        ret->state = STATES[s.state];
    else
        ret->state = s.url.ptr != NULL ? "serving" : "free";
    return true;
}

static bool moved_at(void *ctx, size_t shard, size_t i, struct str *ret)
{
    const struct node *node = ctx;
    *ret = placement_moved_to(directory_view(node->directory), shard, i);
    return ret->ptr != NULL;
}

void node_fill_api(struct node *node)
{
    node->api_node = (struct api_node){.ctx = node,
                                       .engine_at = engine_at,
                                       .ready = ready,
                                       .node_at = node_at,
                                       .shard_at = shard_at,
                                       .moved_at = moved_at};
}
