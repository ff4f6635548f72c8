/* What a node shows of the cluster: its shards, the directory, and requests that it sends to
 * others. All families are there on an embedded store too, and say that nothing happened. */
#ifndef PAWL_CLUSTER_NODE_METRICS_H
#define PAWL_CLUSTER_NODE_METRICS_H

#include "base/metrics.h"

/* How a shard became this node's. */
enum shard_taken {
    SHARD_TAKEN_FREE,    /* its owner had handed it over, or it never had one */
    SHARD_TAKEN_EXPIRED, /* its owner's lease was over */
    SHARD_TAKEN_OWN,     /* an earlier process had this node's name */
    SHARD_TAKEN_COUNT,
};

struct node_metrics {
    struct metric *owner;     /* by shard */
    struct metric *unowned;   /* shards */
    struct metric *taken;     /* by enum shard_taken */
    struct metric *failures;  /* of shards, by what failed */
    struct metric *read_at;   /* when the directory was read last */
    struct metric *forwarded; /* by node */
    struct metric *forward_failures;
};

/* False when memory ran out. */
MUST_CHECK bool node_metrics_declare(struct node_metrics *m, struct metrics *registry);
void node_metrics_count_taken(struct node_metrics *m, enum shard_taken taken);

#endif
