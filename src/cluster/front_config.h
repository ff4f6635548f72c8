/* What the front of a node has to know. */
#ifndef PAWL_CLUSTER_FRONT_CONFIG_H
#define PAWL_CLUSTER_FRONT_CONFIG_H

#include "api/api.h"
#include "cluster/calls/node_call.h"
#include "cluster/node_metrics.h"

/* Who serves a shard now. */
struct front_owner {
    struct api *api; /* not NULL: this node */
    /* Otherwise: another node. url.ptr NULL: nobody. */
    struct str node;
    struct str url;     /* http://HOST:PORT */
    struct str session; /* of that node's process */
};

/* What the front has to know of the cluster. */
struct front_cluster {
    const void *ctx;
    size_t shard_count;
    size_t (*shard_of)(const void *ctx, struct str tenant);
    /* Texts are valid until the next turn of the loop. */
    struct front_owner (*owner_of)(const void *ctx, size_t shard);
    /* Grows whenever owners may have changed. */
    uint64_t (*view)(const void *ctx);
    /* What owner_of() says seems to be wrong: look again soon. */
    void (*refresh)(const void *ctx);
    /* A clock that all nodes share. */
    int64_t (*now_ms)(const void *ctx);
};

struct front_config {
    const struct env *env;
    const struct node_metrics *metrics;
    struct api *node_api;        /* for what concerns the node and no shard */
    const struct api_auth *auth; /* NULL: no keys are needed (--dev) */
    struct str secret;           /* of the cluster */
    struct str session;          /* of this process */
    struct str url;              /* where it reaches itself */
    struct node_client_config client;
    struct front_cluster cluster;
};

#endif
