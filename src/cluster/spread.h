/* pawl migrate into a cluster: the source is copied into shard 0, from where each tenant then moves
 * to the shard that its name leads to. Until all have, every shard is marked as an unfinished copy,
 * and no node opens it. Waits for the database. */
#ifndef PAWL_CLUSTER_SPREAD_H
#define PAWL_CLUSTER_SPREAD_H

#include "base/problem.h"

/* How many shards a store has; 1: it is no cluster, or there is nothing yet. */
MUST_CHECK enum err cluster_count_shards(const char *store, struct problem *p, size_t *ret);
/* May it be the target? Refused: nodes live, or shards are in other databases. */
MUST_CHECK enum err cluster_spread_check(const char *store, struct problem *p);
/* Refused: a shard but the first has tenants. */
MUST_CHECK enum err cluster_spread_check_empty(const char *store, struct problem *p);
/* Sets up and marks all shards but the first. */
MUST_CHECK enum err cluster_spread_prepare(const char *store, struct problem *p);
/* Shard 0 has all rows, and nobody has it open. Goes on where an earlier call was interrupted.
 * `on_moved` hears of each tenant. */
typedef void cluster_spread_moved(void *ctx, const char *tenant, size_t shard, int64_t rows);
MUST_CHECK enum err cluster_spread(const char *store, cluster_spread_moved *on_moved, void *ctx,
                                   struct problem *p);

#endif
