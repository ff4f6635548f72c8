/* One connection to Redis, and what the gate says over it. Blocking, for the gate's own thread: no
 * call takes much longer than GATE_REPLY_MS_MAX for each round trip.
 *
 *   pawl:lock:{TENANT}        the lock: its value is the holder's token
 *   pawl:key:{TENANT}:KEY     the reservation of an idempotency key
 *
 * The braces keep both in one slot of a Redis cluster. */
#ifndef PAWL_GATE_REDIS_LINK_H
#define PAWL_GATE_REDIS_LINK_H

#include "gate/gate.h"
#include "gate/redis_url.h"

struct redisContext;

struct redis_link {
    const struct redis_url *url;
    struct redisContext *redis; /* NULL: not connected */
    char fault[160];            /* of the last failure; "" when the last request was answered */
};

/* Connects unless it is connected. False when it cannot: the fault says why. */
MUST_CHECK bool redis_link_open(struct redis_link *link);
/* Answers each request of the list, those of GATE_ENTER and GATE_LEAVE in one round trip. After a
 * failure the link is closed, and what was not answered is GATE_DOWN. */
void redis_link_ask(struct redis_link *link, struct gate_request *first);
void redis_link_close(struct redis_link *link);

#endif
