/* A cluster that is copied whole (pawl migrate): its shards, wherever they are, and the right to
 * have them for oneself. Waits for the database. */
#ifndef PAWL_CLUSTER_SOURCE_H
#define PAWL_CLUSTER_SOURCE_H

#include "base/problem.h"

struct cluster_source;

/* Refused: nodes live. Whoever opens a shard of the directory's database locks it there. The locks
 * of the others are held here, as long as the source is open. */
MUST_CHECK enum err cluster_source_open(const char *store, struct problem *p,
                                        struct cluster_source **ret);
/* NULL is fine. */
void cluster_source_close(struct cluster_source *source);
/* The URL of a shard, where it is. */
void cluster_source_put_url(const struct cluster_source *source, size_t shard, struct buf *out);
/* ERR_STORE_FAILED: the locks were lost, so that nodes may have taken shards. */
MUST_CHECK enum err cluster_source_check(struct cluster_source *source, struct problem *p);

#endif
