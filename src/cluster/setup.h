/* What is done to a cluster on its database, without being a node. Waits for the database. */
#ifndef PAWL_CLUSTER_SETUP_H
#define PAWL_CLUSTER_SETUP_H

#include "base/problem.h"
#include "store/postgres/cluster_store.h"

/* The directory of a cluster; another kind of store is refused. */
MUST_CHECK enum err cluster_open(const char *store, struct problem *p, struct cluster_store **ret);
/* Makes an empty database a cluster. One that is there already keeps its number of shards, which
 * *ret_shards tells. */
MUST_CHECK enum err cluster_init(const char *store, size_t shards, struct problem *p, bool *ret_new,
                                 size_t *ret_shards);
/* Sees to it that it has so many spare shards beside them. */
MUST_CHECK enum err cluster_add_spares(const char *store, size_t spares, struct problem *p);
/* Puts a shard into another database, before it is used for the first time. */
MUST_CHECK enum err cluster_place(const char *store, size_t shard, const char *url,
                                  struct problem *p);
/* ERR_NOT_FOUND: there is no such node. */
MUST_CHECK enum err cluster_drain(const char *store, const char *node, bool draining,
                                  struct problem *p);

#endif
