/* What the engine is opened with. */
#ifndef PAWL_RUNTIME_ENGINE_CONFIG_H
#define PAWL_RUNTIME_ENGINE_CONFIG_H

#include "base/env.h"
#include "base/metrics.h"
#include "domain/address.h"

struct bus;
struct gate;

struct engine_config {
    struct str store_url;
    struct str root_key; /* empty: none */
    const struct env *env;
    struct metrics *metrics;
    int64_t log_bytes_max;        /* 0: the default */
    struct gate *gate;            /* NULL: the store's own */
    struct bus *bus;              /* where events go; NULL: nowhere. Outlives the engine */
    const struct str *bus_queues; /* whose jobs are offered there too; outlive the engine */
    size_t bus_queue_count;
    bool keeps_all;           /* removes neither old runs nor old rows of the feed */
    enum address_reach reach; /* what http steps and webhooks may call */
};

#endif
