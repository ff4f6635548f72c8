/* Requests that other nodes answer: each is sent to the owner of its shard, and once more if that
 * owner has changed meanwhile and it is certain that nothing is done twice. */
#ifndef PAWL_CLUSTER_VISIT_H
#define PAWL_CLUSTER_VISIT_H

#include "api/call.h"
#include "cluster/front_state.h"

/* Sends the request to the shard's owner; takes the call over. If it has to be sent again, it goes
 * to the shard that the tenant is in by then; ptr NULL: to the same. */
void visit_begin(struct front *f, struct call *c, size_t shard, struct str tenant);
/* Asks several shards, one after the other (errand.h). */
void visit_all(struct front *f, struct call *c);

/* Once per turn: tries again, gives up nodes that have lost the shard, and ends what was asked with
 * a key that is revoked. */
void visits_poll(struct front *f);
int visits_timeout_ms(const struct front *f);
/* Streams end, and claims wait no longer: the server stops. */
void visits_end_waits(struct front *f);

#endif
