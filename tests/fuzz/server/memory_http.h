/* src/http/http.h without connections: a request is a struct, and so is its answer. */
#ifndef PAWL_FUZZ_MEMORY_HTTP_H
#define PAWL_FUZZ_MEMORY_HTTP_H

#include "http/http.h"

struct memory_request {
    struct http_request pub; /* first: the handler's view */
    struct http_param *headers;
    size_t header_count;
    int holders;
    bool answered;
    bool hung_up;
    bool is_over; /* the client is gone */
    struct http_reply reply;
    const struct http_source *source; /* of a streamed answer; NULL: none, or it has ended */
};

/* All text is copied. */
struct memory_request *memory_request_new(const struct env *env, struct str method,
                                          struct str target, struct str body,
                                          const struct http_param *headers, size_t header_count);
/* The client has all it gets. */
void memory_request_over(struct memory_request *r);

#endif
