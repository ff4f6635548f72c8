/* What an api asks of the server around it, when that is a node of a cluster: cluster/node.c
 * answers. Called on the HTTP loop's thread; texts are valid until the loop turns. */
#ifndef PAWL_API_NODE_H
#define PAWL_API_NODE_H

#include "base/problem.h"

struct engine;

struct api_cluster_node {
    struct str name;
    struct str url;    /* ptr NULL: it has none */
    const char *state; /* live, draining, stopping or lost */
    int64_t lease_ms;  /* that is left; -1: it has no lease */
    int64_t shards;    /* that it owns */
};

struct api_cluster_shard {
    struct str owner;    /* ptr NULL: nobody */
    const char *state;   /* serving, opening, leaving or free */
    int64_t epoch;       /* -1: it has none */
    struct str database; /* that has its tables, without credentials; ptr NULL: the directory's */
};

struct api_node {
    void *ctx;
    /* The engines of this server, by number; NULL after the last. */
    struct engine *(*engine_at)(void *ctx, size_t i);
    /* ERR_OK when the server takes work; otherwise the reason why not. */
    enum err (*ready)(void *ctx, struct problem *p);
    /* The cluster as this node sees it, by number; false after the last. */
    bool (*node_at)(void *ctx, size_t i, struct api_cluster_node *ret);
    bool (*shard_at)(void *ctx, size_t i, struct api_cluster_shard *ret);
    /* The tenants that were moved to a shard, the same way. */
    bool (*moved_at)(void *ctx, size_t shard, size_t i, struct str *ret);
};

#endif
