/* What servers call: http steps and webhooks arrive here, by the path of their URL. */
#ifndef PAWL_TESTS_SIM_RECEIVER_H
#define PAWL_TESTS_SIM_RECEIVER_H

#include "sim/sim.h"

/* One row for each: the path begins with this text, and this function answers as
 * sim_receiver.receive does. */
#define SIM_PATHS(X)            \
    X("/hooks/", hooks_receive) \
    X("/steps/", steps_receive)

#define X(prefix, function) int64_t function(struct place *p, struct http_call *call);
SIM_PATHS(X)
#undef X

/* For sim_receiver.receive; ctx is the place. */
int64_t receiver_receive(void *ctx, struct http_call *call);

/* A header of the request; ptr NULL: absent. */
struct str received_header(const struct http_call *call, const char *name);
/* The call is answered with this status and JSON. */
void receiver_answer(struct http_call *call, int status, const char *json);

#endif
