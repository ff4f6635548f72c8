/* The end of a request: the use case's answer as it is sent, and requests whose client or key has
 * gone by then. */
#ifndef PAWL_API_ANSWER_H
#define PAWL_API_ANSWER_H

#include "api/call.h"

/* Room for the header Location of a route with ROUTE_ASKS, before the change is made: afterwards
 * nothing may fail. */
MUST_CHECK enum err answer_reserve(struct call *c);

/* For struct op: done, timed_out and is_there. */
void answer_done(struct op *op);
void answer_timed_out(struct op *op);
bool answer_is_awaited(const struct op *op);
/* Called with the call when the client has left before its answer. */
void answer_disconnected(void *user);

#endif
