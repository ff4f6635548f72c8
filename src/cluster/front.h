/* In front of the shards: finds out whose request it is and which shard answers it, and hands it to
 * that shard's api, or to the node that has it. A request that another node has forwarded is
 * answered here or not at all. On the loop's thread only. */
#ifndef PAWL_CLUSTER_FRONT_H
#define PAWL_CLUSTER_FRONT_H

#include "cluster/front_config.h"

struct front;

/* Texts are copied, but not those of `client`. NULL when memory ran out. */
MUST_CHECK struct front *front_new(const struct front_config *config);
/* Every request must have been answered. */
void front_free(struct front *front);

/* An http_handler; ctx is a struct front. */
void front_handle(void *ctx, struct http_request *req);

/* Readable when another node has answered. */
int front_event_fd(const struct front *front);
/* Call it once per turn, and say whether that is readable. */
void front_poll(struct front *front, bool readable);
/* How long the loop may sleep until then; -1: forever. */
int front_timeout_ms(const struct front *front);
/* Ends the event streams that are forwarded. */
void front_drain(struct front *front);
/* True when nothing is forwarded. */
bool front_idle(const struct front *front);

#endif
