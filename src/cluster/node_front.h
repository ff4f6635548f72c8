/* The front of a node: what struct front_cluster asks, answered by the node (node.h). */
#ifndef PAWL_CLUSTER_NODE_FRONT_H
#define PAWL_CLUSTER_NODE_FRONT_H

#include "cluster/front.h"
#include "cluster/node.h"

/* The node must have joined, and outlive it. */
struct front_cluster node_front_cluster(struct node *node);

#endif
