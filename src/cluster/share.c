/* A node's fair share of the shards. */
#include "cluster/share.h"

struct count {
    size_t owned[CLUSTER_NODES_MAX];
    size_t live; /* nodes that take shards */
    size_t free; /* shards that anyone may take */
};

static bool takes(const struct cluster_node *n)
{
    return cluster_node_lives(n) && !n->draining && !n->stopping;
}

static bool is_free(const struct cluster_view *view, size_t shard)
{
    int owner = view->shards[shard].owner;
    if (view->shards[shard].held)
        return false;
    return owner < 0 || !cluster_node_lives(&view->nodes[owner]);
}

static struct count count_of(const struct cluster_view *view)
{
    struct count c = {0};
    for (size_t i = 0; i < view->node_count; i++)
        c.live += takes(&view->nodes[i]);
    for (size_t i = 0; i < view->shard_count; i++) {
        if (is_free(view, i))
            c.free++;
        else if (view->shards[i].owner >= 0)
            c.owned[view->shards[i].owner]++;
    }
    return c;
}

/* Nodes begin at different places, so that they seldom want the same shard. */
static size_t first_of(const struct cluster_view *view, const struct count *c)
{
    size_t before = 0;
    assert(c->live > 0); /* itself */
    for (int i = 0; i < view->self; i++)
        before += takes(&view->nodes[i]);
    return before * view->shard_count / c->live;
}

static void take_share(const struct cluster_view *view, const struct count *c,
                       enum share_move *moves)
{
    assert(c->live > 0); /* this node is one of them */
    size_t share = (view->shard_count + c->live - 1) / c->live;
    size_t owned = c->owned[view->self];
    size_t first = first_of(view, c);
    for (size_t i = 0; i < view->shard_count && owned < share; i++) {
        size_t shard = (first + i) % view->shard_count;
        if (is_free(view, shard)) {
            moves[shard] = SHARE_TAKE;
            owned++;
        }
    }
}

/* The first of those with the most gives, so that two nodes do not give for one that lacks. */
static bool has_most(const struct cluster_view *view, const struct count *c)
{
    size_t own = c->owned[view->self];
    size_t fewest = SIZE_MAX;
    for (size_t i = 0; i < view->node_count; i++) {
        if (!takes(&view->nodes[i]))
            continue;
        if (c->owned[i] > own || (c->owned[i] == own && (int)i < view->self))
            return false;
        fewest = MIN(fewest, c->owned[i]);
    }
    return own >= fewest + 2;
}

static void give(const struct cluster_view *view, bool all, enum share_move *moves)
{
    for (size_t i = view->shard_count; i-- > 0;) {
        if (view->shards[i].owner != view->self)
            continue;
        moves[i] = SHARE_GIVE;
        if (!all)
            return;
    }
}

/* Whatever else it does. */
static void give_held(const struct cluster_view *view, enum share_move *moves)
{
    for (size_t i = 0; i < view->shard_count; i++) {
        if (view->shards[i].held && view->shards[i].owner == view->self)
            moves[i] = SHARE_GIVE;
    }
}

void share_plan(const struct cluster_view *view, enum share_move moves[static CLUSTER_SHARDS_MAX])
{
    struct count c = count_of(view);
    for (size_t i = 0; i < view->shard_count; i++)
        moves[i] = SHARE_STAY;
    if (view->self < 0)
        return;
    const struct cluster_node *self = &view->nodes[view->self];
    if (self->draining)
        give(view, true, moves);
    else if (!takes(self))
        return; /* it ends, or the next renewal makes it live again */
    else if (c.free > 0)
        take_share(view, &c, moves);
    else if (has_most(view, &c))
        give(view, false, moves);
    give_held(view, moves);
}

bool share_has_heir(const struct cluster_view *view)
{
    for (size_t i = 0; i < view->node_count; i++) {
        if ((int)i != view->self && takes(&view->nodes[i]))
            return true;
    }
    return false;
}
