/* A node's fair share of the shards: what it takes and what it gives up, decided from one reading
 * of the directory. Pure.
 *
 * Free shards are taken up to an even share. When none is free, the node with the most gives one up
 * if another has at least two fewer. A node that is being drained gives all up. */
#ifndef PAWL_CLUSTER_SHARE_H
#define PAWL_CLUSTER_SHARE_H

#include "store/postgres/cluster_store.h"

enum share_move { SHARE_STAY, SHARE_TAKE, SHARE_GIVE };

/* What view->self does with each shard. */
void share_plan(const struct cluster_view *view, enum share_move moves[static CLUSTER_SHARDS_MAX]);

/* Is there another node that takes shards which view->self gives up? */
bool share_has_heir(const struct cluster_view *view);

#endif
