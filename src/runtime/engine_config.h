/* The configuration of the engine. */
#ifndef PAWL_RUNTIME_ENGINE_CONFIG_H
#define PAWL_RUNTIME_ENGINE_CONFIG_H

#include "base/env.h"
#include "base/metrics.h"
#include "domain/address.h"

struct bus;
struct commit_group;
struct gate;
struct oidc_config;

struct engine_config {
    struct str store_url;
    struct str root_key; /* empty: there is none */
    const struct env *env;
    struct metrics *metrics;
    int64_t log_bytes_max;             /* 0: the default */
    struct commit_group *commit_group; /* the writer's: see db_config; NULL: none */
    struct gate *gate;                 /* outside the store; NULL: none. Outlives the engine */
    struct bus *bus;                   /* publishes events; NULL: no bus. Outlives the engine */
    const struct str *bus_queues; /* their jobs are offered on the bus too; outlive the engine */
    size_t bus_queue_count;
    struct str otlp_url;            /* where spans are exported to; ptr NULL: nowhere */
    const struct oidc_config *oidc; /* people sign in there; NULL: nowhere. Copied, without its
                                       texts; env, reach and event_fd are the engine's */
    bool keeps_all;                 /* never remove old runs or old rows of the feed */
    bool shares_loop; /* with other engines, which no commit on the loop's thread may hold up */
    enum address_reach reach; /* addresses that http steps and webhooks may call */
};

#endif
