/* Moving a tenant: both shards are taken, its rows moved, and both given back. */
#include "cluster/move.h"

#include "base/env.h"
#include "cluster/placement.h"
#include "cluster/setup.h"
#include "domain/tenant.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    TAKE_MS_MAX = 60 * 1000, /* an owner that does not answer loses its lease long before */
    LOOK_AGAIN_MS = 50,
};

struct mover {
    struct cluster_store *store;
    struct tenant_move move;
    struct cluster_view view;
    struct problem *p;
};

/* --- may it be moved? --- */

static enum err check(struct mover *m, bool *ret_was_there)
{
    const struct cluster_view *view = &m->view;
    m->move.from = placement_of(view, str_of(m->move.tenant));
    *ret_was_there = m->move.from == m->move.to;
    if (m->move.to >= view->shard_count)
        return problem_set(m->p, ERR_NOT_FOUND, "The cluster has no shard %zu", m->move.to);
    if (*ret_was_there)
        return ERR_OK;
    if (m->move.to == 0)
        return problem_set(m->p, ERR_BAD_REQUEST,
                           "Shard 0 has the API keys of all tenants, and only those tenants whose "
                           "names lead to it. Choose another shard.");
    m->move.is_home = placement_by_name(view, str_of(m->move.tenant)) == m->move.to;
    if (!m->move.is_home && view->moved_count == CLUSTER_MOVED_MAX)
        return problem_set(m->p, ERR_BAD_REQUEST,
                           "The cluster has %d moved tenants, which is as many as it can have",
                           CLUSTER_MOVED_MAX);
    if (view->shards[m->move.from].place >= 0 || view->shards[m->move.to].place >= 0)
        return problem_set(m->p, ERR_BAD_REQUEST,
                           "Tenants can only be moved between shards in the directory's database");
    return ERR_OK;
}

/* --- shards --- */

/* 0: not yet. */
static enum err try_take(struct mover *m, size_t shard, int64_t *epoch)
{
    const struct cluster_shard *s = &m->view.shards[shard];
    bool free = s->owner < 0 || !cluster_node_lives(&m->view.nodes[s->owner]);
    if (*epoch > 0 || !free)
        return ERR_OK;
    enum err e = cluster_store_take(m->store, shard, s->epoch, m->p, epoch);
    return e == ERR_STORE_BUSY ? ERR_OK : e;
}

static enum err take_both(struct mover *m)
{
    int64_t until = env_mono_ms(&ENV_SYSTEM) + TAKE_MS_MAX;
    enum err e = ERR_OK;
    while (e == ERR_OK && (m->move.from_epoch == 0 || m->move.to_epoch == 0)) {
        if (env_mono_ms(&ENV_SYSTEM) > until)
            return problem_set(m->p, ERR_STORE_BUSY,
                               "The nodes that have the shards do not give them up");
        cluster_store_wait(m->store, -1, LOOK_AGAIN_MS);
        e = cluster_store_renew(m->store, m->p);
        if (e == ERR_OK)
            e = cluster_store_read(m->store, m->p, &m->view);
        if (e == ERR_OK)
            e = try_take(m, m->move.from, &m->move.from_epoch);
        if (e == ERR_OK)
            e = try_take(m, m->move.to, &m->move.to_epoch);
    }
    return e;
}

/* What cannot be given back is taken by the nodes when the lease is over. */
static void give_back(struct mover *m)
{
    struct problem ignored;
    problem_init(&ignored);
    if (m->move.from_epoch > 0)
        (void)!cluster_store_release(m->store, m->move.from, &ignored);
    if (m->move.to_epoch > 0)
        (void)!cluster_store_release(m->store, m->move.to, &ignored);
    (void)!cluster_store_leave(m->store, &ignored);
    problem_release(&ignored);
}

/* Waits for an owner that is in the middle of a commit, and for another mover. */
static enum err join(struct mover *m)
{
    int64_t until = env_mono_ms(&ENV_SYSTEM) + TAKE_MS_MAX;
    char name[NODE_NAME_LEN_MAX + 1];
    (void)snprintf(name, sizeof(name), "move-%d", (int)getpid());
    enum err e;
    do {
        e = cluster_store_join_for(m->store, name, m->move.from, m->move.to, m->p);
        if (e == ERR_STORE_BUSY)
            cluster_store_wait(m->store, -1, LOOK_AGAIN_MS);
    } while (e == ERR_STORE_BUSY && env_mono_ms(&ENV_SYSTEM) < until);
    return e;
}

static enum err move_rows(struct mover *m, int64_t *ret_rows)
{
    enum err e = join(m);
    if (e == ERR_OK)
        e = take_both(m);
    if (e == ERR_OK)
        e = cluster_store_move_tenant(m->store, &m->move, m->p, ret_rows);
    give_back(m);
    return e;
}

enum err cluster_move_tenant(const char *store, const char *tenant, size_t to, struct problem *p,
                             struct move_result *ret)
{
    if (!tenant_id_ok(str_of(tenant)))
        return problem_set(p, ERR_NOT_FOUND, "There is no tenant %s", tenant);
    struct mover *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    *ret = (struct move_result){.was_there = false};
    m->move = (struct tenant_move){.tenant = tenant, .to = to};
    m->p = p;
    enum err e = cluster_open(store, p, &m->store);
    if (e == ERR_OK)
        e = cluster_store_check(m->store, p);
    if (e == ERR_OK)
        e = cluster_store_read(m->store, p, &m->view);
    if (e == ERR_OK)
        e = check(m, &ret->was_there);
    ret->from = m->move.from;
    if (e == ERR_OK && !ret->was_there)
        e = move_rows(m, &ret->rows);
    cluster_store_close(m->store);
    free(m);
    return e;
}
