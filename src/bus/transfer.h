/* One call on libcurl, hop by hop: the rules for what may be sent where, and the bounds on what
 * comes back. On the caller's thread only. */
#ifndef PAWL_BUS_TRANSFER_H
#define PAWL_BUS_TRANSFER_H

#include "bus/http_call.h"
#include "domain/address.h"

#include <curl/curl.h>

struct transfer {
    struct http_call *call; /* NULL: none */
    CURL *easy;
    enum address_reach reach;

    CURLU *origin; /* where the request was meant for */
    struct curl_slist *headers;
    struct str method;
    bool secure;    /* this hop is https */
    int redirects;  /* so far */
    CURLcode setup; /* the first option that could not be set */

    /* What the callbacks saw. */
    bool resolving; /* a name is being looked up */
    bool refused;   /* an address was, and none was tried */
    bool tried;     /* an address was */
    const char *refused_kind;
    bool too_large;
    size_t head_bytes; /* of all hops */
    char error[CURL_ERROR_SIZE];
};

/* Makes the easy handle ready for the first hop. False when the call is over already. */
MUST_CHECK bool transfer_begin(struct transfer *t, struct http_call *call,
                               enum address_reach reach);
/* libcurl is done with a hop, and the handle is out of its multi handle. True when there is another
 * hop to make; otherwise the call's end is set. */
MUST_CHECK bool transfer_goes_on(struct transfer *t, CURLcode code);
/* Lets go of everything but the call, which is returned. */
struct http_call *transfer_release(struct transfer *t);

#endif
