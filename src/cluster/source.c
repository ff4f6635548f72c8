/* Clusters as sources of copies. */
#include "cluster/source.h"

#include "cluster/setup.h"

#include <stdlib.h>

struct cluster_source {
    const char *url;
    struct cluster_store *store;
    struct cluster_view view;
};

static bool is_elsewhere(const struct cluster_source *s, size_t shard)
{
    return s->view.shards[shard].place >= 0;
}

static enum err check_nodes(const struct cluster_source *s, struct problem *p)
{
    for (size_t i = 0; i < s->view.node_count; i++) {
        if (cluster_node_lives(&s->view.nodes[i]))
            return problem_set(p, ERR_STORE_FAILED,
                               "The node %s uses the source. Stop all nodes first.",
                               s->view.nodes[i].name);
    }
    return ERR_OK;
}

static enum err hold_shards(struct cluster_source *s, struct problem *p)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < s->view.shard_count && e == ERR_OK; i++) {
        if (is_elsewhere(s, i))
            e = cluster_store_hold(s->store, i, p);
    }
    return e;
}

/* The locks come before the reading: a node that has come in between shows in it. */
static enum err open_source(struct cluster_source *s, struct problem *p)
{
    enum err e = cluster_open(s->url, p, &s->store);
    if (e == ERR_OK)
        e = cluster_store_check(s->store, p);
    if (e == ERR_OK)
        e = cluster_store_read(s->store, p, &s->view);
    if (e == ERR_OK)
        e = hold_shards(s, p);
    if (e == ERR_OK)
        e = cluster_store_read(s->store, p, &s->view);
    return e == ERR_OK ? check_nodes(s, p) : e;
}

enum err cluster_source_open(const char *store, struct problem *p, struct cluster_source **ret)
{
    struct cluster_source *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    s->url = store;
    enum err e = open_source(s, p);
    if (e == ERR_OK)
        *ret = s;
    else
        cluster_source_close(s);
    return e;
}

void cluster_source_close(struct cluster_source *source)
{
    if (source == NULL)
        return;
    cluster_store_close(source->store);
    free(source);
}

void cluster_source_put_url(const struct cluster_source *source, size_t shard, struct buf *out)
{
    const struct cluster_view *view = &source->view;
    const char *url =
        is_elsewhere(source, shard) ? view->places[view->shards[shard].place] : source->url;
    assert(shard < view->shard_count);
    buf_printf(out, "%s%cshard=%zu", url, strchr(url, '?') != NULL ? '&' : '?', shard);
}

enum err cluster_source_check(struct cluster_source *source, struct problem *p)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < source->view.shard_count && e == ERR_OK; i++) {
        bool held = true;
        if (is_elsewhere(source, i))
            e = cluster_store_still_holds(source->store, i, p, &held);
        if (e == ERR_STORE_BUSY || (e == ERR_OK && !held))
            e = problem_set(p, ERR_STORE_FAILED,
                            "The connection to the source was lost, so a node may have used it "
                            "since. Remove the target and start again.");
    }
    return e;
}
