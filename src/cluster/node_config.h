/* The configuration of a node. */
#ifndef PAWL_CLUSTER_NODE_CONFIG_H
#define PAWL_CLUSTER_NODE_CONFIG_H

#include "api/config.h"
#include "runtime/engine.h"

struct bus;
struct gate;

/* Texts outlive the node. */
struct node_config {
    const char *store;     /* sqlite:PATH or postgres://… */
    const char *name;      /* of this node; NULL: the host's name */
    bool is_private;       /* for one command: it is refused while any node lives */
    const char *advertise; /* where other nodes reach it; NULL: where it listens */
    struct engine_config
        engine; /* of every shard, but for store_url, metrics, bus, gate and commit_group */
    struct api_config api;   /* of every shard; the node sets engine, metrics, node and name */
    struct metrics *metrics; /* what the process counts beside its engines */
    /* Makes the bus of one shard, on any thread; NULL: there is none. */
    enum err (*make_bus)(void *ctx, struct problem *p, struct bus **ret);
    void *make_bus_ctx;
    /* The same for the gate outside the store. */
    enum err (*make_gate)(void *ctx, struct problem *p, struct gate **ret);
    void *make_gate_ctx;
};

#endif
