/* Outgoing HTTP calls without a network: a receiver of the simulator's own decides what comes of
 * each call, and when. Takes the place of src/bus/http_caller.c. */
#ifndef PAWL_TESTS_SIM_CALLER_H
#define PAWL_TESTS_SIM_CALLER_H

#include "bus/http_caller.h"

/* What comes of a call: `call` gets its end, status and body. */
struct sim_receiver {
    /* The call has arrived. Fills in the result and returns how long it takes until the caller has
     * it; the receiver has done its work at once. */
    int64_t (*receive)(void *ctx, struct http_call *call);
    void *ctx;
};

/* Callers made from now on call this receiver; one for each server. */
void sim_caller_use(const struct sim_receiver *receiver);
/* The server is gone: calls no longer reach anybody, and end. */
void sim_caller_cut(const struct sim_receiver *receiver);
/* Ends calls whose time has come. False when none did. */
bool sim_caller_turn(const struct sim_receiver *receiver, int64_t now_ns);
/* When the next one ends; INT64_MAX: none is under way. */
int64_t sim_caller_next_ns(const struct sim_receiver *receiver);

#endif
