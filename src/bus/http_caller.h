/* Makes outbound HTTP calls on a thread of its own, many at a time, and gives each back when it is
 * over: answered, failed, too late or aborted, exactly once.
 *
 * Every call and every redirect of it is bounded: in time, in the size of the response, in the
 * number of hops. Only http and https are spoken; proxies of the environment are not used; headers
 * that may hold credentials do not travel to another origin, and nothing goes on from https to
 * http. Addresses out of reach (domain/address.h) are refused when a socket is about to be
 * connected, so that whatever a name resolved to before does not matter. Connections are kept for
 * the next call to the same origin; a request that finds its kept connection closed is sent once
 * more by libcurl, so receivers that count effects need an idempotency key. */
#ifndef PAWL_BUS_HTTP_CALLER_H
#define PAWL_BUS_HTTP_CALLER_H

#include "bus/http_call.h"
#include "domain/address.h"

struct http_caller;

struct http_caller_config {
    enum address_reach reach;
    int event_fd; /* written when there is something to collect */
    /* Called on the caller's thread for each call that is over, before it can be collected: for
     * work that should not hold up who collects. NULL: nothing to do. */
    void (*over)(struct http_call *call);
};

/* The thread begins with the first call. NULL when memory ran out. */
struct http_caller *http_caller_new(const struct http_caller_config *config);
/* Aborts what is under way, ends the thread, and frees what was not collected. */
void http_caller_free(struct http_caller *caller);

/* Takes the call over. False, and the call stays the maker's, when CALLS_WAITING_MAX others wait to
 * be begun, or memory for the thread ran out. Any thread. */
MUST_CHECK bool http_caller_submit(struct http_caller *caller, struct http_call *call);
/* What is over, linked by `next`, in the order of ending. The caller owns it. Any thread. */
struct http_call *http_caller_collect(struct http_caller *caller);
/* All calls submitted so far come back soon; those that are not over yet as CALL_ABORTED. Any
 * thread. */
void http_caller_abort(struct http_caller *caller);

#endif
