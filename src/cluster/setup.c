/* What is done to a cluster on its database. */
#include "cluster/setup.h"

enum err cluster_open(const char *store, struct problem *p, struct cluster_store **ret)
{
    if (!str_starts_with(str_of(store), STR("postgres")))
        return problem_set(p, ERR_BAD_REQUEST,
                           "A cluster needs a PostgreSQL database: --store postgres://…");
    return cluster_store_open(store, &ENV_SYSTEM, p, ret);
}

enum err cluster_init(const char *store, size_t shards, struct problem *p, bool *ret_new,
                      size_t *ret_shards)
{
    struct cluster_store *c = NULL;
    struct cluster_view view = {0};
    enum err e = cluster_open(store, p, &c);
    if (e == ERR_OK)
        e = cluster_store_init(c, shards, p, ret_new);
    if (e == ERR_OK)
        e = cluster_store_read(c, p, &view);
    *ret_shards = view.hashed;
    cluster_store_close(c);
    return e;
}

enum err cluster_add_spares(const char *store, size_t spares, struct problem *p)
{
    struct cluster_store *c = NULL;
    enum err e = cluster_open(store, p, &c);
    if (e == ERR_OK)
        e = cluster_store_add_spares(c, spares, p);
    cluster_store_close(c);
    return e;
}

enum err cluster_place(const char *store, size_t shard, const char *url, struct problem *p)
{
    struct cluster_store *c = NULL;
    enum err e = cluster_open(store, p, &c);
    if (e == ERR_OK)
        e = cluster_store_place(c, shard, url, p);
    cluster_store_close(c);
    return e;
}

enum err cluster_drain(const char *store, const char *node, bool draining, struct problem *p)
{
    struct cluster_store *c = NULL;
    enum err e = cluster_open(store, p, &c);
    if (e == ERR_OK)
        e = cluster_store_set_draining(c, node, draining, p);
    cluster_store_close(c);
    return e;
}
