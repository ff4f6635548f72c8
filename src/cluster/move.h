/* pawl cluster move-tenant: moves a tenant to another shard while the nodes run. */
#ifndef PAWL_CLUSTER_MOVE_H
#define PAWL_CLUSTER_MOVE_H

#include "base/problem.h"

struct move_result {
    bool was_there; /* nothing had to be done */
    size_t from;
    int64_t rows;
};

/* Takes both shards for itself, moves the tenant's rows in one transaction, and gives them back.
 * Waits for the nodes that have them. After an error nothing was moved, unless the connection was
 * lost at the very end: then the same command tells. */
MUST_CHECK enum err cluster_move_tenant(const char *store, const char *tenant, size_t to,
                                        struct problem *p, struct move_result *ret);

#endif
