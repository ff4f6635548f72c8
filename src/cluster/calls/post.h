/* Requests of the node itself to the owner of a shard. Each is sent once, as another node's request
 * would be; a node that serves the shard itself asks itself. */
#ifndef PAWL_CLUSTER_POST_H
#define PAWL_CLUSTER_POST_H

#include "cluster/front_state.h"

/* The owner has answered with this status; 0: it has not. */
typedef void post_over(void *ctx, int status);

/* POSTs JSON, as the caller; NULL: as the node. Texts are copied. `over` may be called before it
 * returns. */
void post_send(struct front *f, size_t shard, const struct caller *caller, struct str path,
               struct str body, post_over *over, void *ctx);

/* Gives jobs back that the caller was handed by `answer` but never got: each lease is released at
 * once, which counts no attempt. */
void post_give_back(struct front *f, const struct caller *caller, struct str answer);

#endif
