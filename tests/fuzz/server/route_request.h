/* Requests for any route, made from the route's own table of parameters and the decisions of an
 * input: mostly values that the route accepts, so that the code behind it is reached, and now and
 * then anything. */
#ifndef PAWL_FUZZ_ROUTE_REQUEST_H
#define PAWL_FUZZ_ROUTE_REQUEST_H

#include "../taker.h"
#include "api/routes.h"
#include "fuzz_server.h"

/* By number, round and round. */
const struct route *route_at(size_t number);

struct route_request {
    struct fuzz_request request;
    struct arena arena; /* what the request points to */
};

/* Release it afterwards. */
void route_request_make(struct route_request *r, const struct route *route, struct taker *t);
void route_request_release(struct route_request *r);

/* One that may be asked for as it is: no query, no headers but the tenant's. */
void route_request_plain(struct route_request *r, const struct route *route, size_t number);

#endif
