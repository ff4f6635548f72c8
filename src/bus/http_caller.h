/* Makes outgoing HTTP calls on a thread of its own, many at a time. Each call comes back exactly
 * once: answered, failed, timed out or aborted.
 *
 * Time, size of the response and number of redirects are limited. Only http and https are used, and
 * no proxies of the environment. Headers that may hold credentials are not sent to another origin,
 * and a redirect from https to http is not followed. An address out of reach (domain/address.h) is
 * refused when the socket is about to be connected, so it does not matter what the name resolved to
 * before. Connections are kept open for the next call to the same origin. If a kept connection
 * turns out to be closed, libcurl sends the request again, so receivers need an idempotency key. */
#ifndef PAWL_BUS_HTTP_CALLER_H
#define PAWL_BUS_HTTP_CALLER_H

#include "bus/http_call.h"
#include "domain/address.h"

struct http_caller;

struct http_caller_config {
    enum address_reach reach;
    int event_fd; /* written when there is something to collect */
    /* Called on the thread that makes the calls, for each call that has ended, before it can be
     * collected: for work that should not hold up the collector. NULL: nothing to do. */
    void (*over)(struct http_call *call);
};

/* The thread starts with the first call. NULL: out of memory. */
struct http_caller *http_caller_new(const struct http_caller_config *config);
/* Aborts the calls under way, ends the thread, and frees calls that were not collected. */
void http_caller_free(struct http_caller *caller);

/* Takes the call over. False when CALLS_WAITING_MAX others wait to begin, or the thread could not
 * be started; then the maker still owns the call. Any thread. */
MUST_CHECK bool http_caller_submit(struct http_caller *caller, struct http_call *call);
/* Calls that have ended, linked by `next`, in that order. The maker owns them. Any thread. */
struct http_call *http_caller_collect(struct http_caller *caller);
/* All calls submitted so far end soon, as CALL_ABORTED unless they have ended before. Any thread.
 */
void http_caller_abort(struct http_caller *caller);

#endif
