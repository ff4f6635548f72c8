/* One call on libcurl, hop by hop: the rules for what may be sent where, and the limits on the
 * response. On the thread that makes the calls only. */
#ifndef PAWL_BUS_TRANSFER_H
#define PAWL_BUS_TRANSFER_H

#include "bus/http_call.h"
#include "domain/address.h"

#include <curl/curl.h>

struct transfer {
    struct http_call *call; /* NULL: none */
    CURL *easy;
    enum address_reach reach;

    CURLU *origin; /* the URL of the request, before any redirect */
    struct curl_slist *headers;
    struct str method;
    bool secure;    /* this hop is https */
    int redirects;  /* so far */
    CURLcode setup; /* the first option that could not be set */

    /* What the callbacks saw. */
    bool resolving; /* a name is being looked up */
    bool refused;   /* an address was out of reach */
    bool tried;     /* a connection to an address was tried */
    const char *refused_kind;
    bool too_large;
    bool head_complete; /* the empty line after the headers came */
    size_t head_bytes;  /* of all hops */
    char error[CURL_ERROR_SIZE];
};

/* Prepares the easy handle for the first hop. False when the call has ended already. */
MUST_CHECK bool transfer_begin(struct transfer *t, struct http_call *call,
                               enum address_reach reach);
/* A hop has ended, and the handle is out of its multi handle. True when there is another hop to
 * make; otherwise the call's end is set. */
MUST_CHECK bool transfer_goes_on(struct transfer *t, CURLcode code);
/* Frees everything except the call, which is returned. */
struct http_call *transfer_release(struct transfer *t);

#endif
