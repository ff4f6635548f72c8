/* Who sends a request, on any node of a cluster. API keys and the secret of sessions are in shard
 * 0's store. The node that serves it asks its engine; every other one reads the store, and caches
 * what it has read until any key has changed. A node that has not heard from the directory for as
 * long as a lease believes no key: it may have been revoked. On the loop's thread only. */
#ifndef PAWL_CLUSTER_IDENTITY_H
#define PAWL_CLUSTER_IDENTITY_H

#include "api/config.h"
#include "base/env.h"
#include "base/metrics.h"

struct identity;

struct identity_config {
    const struct env *env;
    struct str root_key; /* may be empty */
    struct metrics *metrics;
};

/* NULL when memory ran out. */
MUST_CHECK struct identity *identity_new(const struct identity_config *config);
void identity_free(struct identity *identity);

/* What it has to know of shard 0. */
struct identity_source {
    const void *ctx;
    const char *store; /* its URL */
    struct engine *(*engine)(
        const void *ctx);               /* which this node serves it with; NULL: it does not */
    uint64_t (*epoch)(const void *ctx); /* grows with every change of its keys */
    int64_t (*age_ms)(const void *ctx); /* how long ago that was looked at */
};

/* Before the first request. */
void identity_use(struct identity *identity, const struct identity_source *source);

/* For struct api_config. */
const struct api_auth *identity_auth(const struct identity *identity);

#endif
