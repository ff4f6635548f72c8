/* Which shard a tenant lives in, by one reading of the directory. Pure. */
#ifndef PAWL_CLUSTER_PLACEMENT_H
#define PAWL_CLUSTER_PLACEMENT_H

#include "store/postgres/cluster_store.h"

/* The same on every node that has read the same rows: by a fixed hash of the name, unless the
 * tenant was moved. */
size_t placement_of(const struct cluster_view *view, struct str tenant);
/* The one that its name leads to. */
size_t placement_by_name(const struct cluster_view *view, struct str tenant);
/* The tenants that have been moved to this shard, by number; ptr NULL after the last. */
struct str placement_moved_to(const struct cluster_view *view, size_t shard, size_t number);

#endif
