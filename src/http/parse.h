/* A strict, incremental parser for HTTP/1.1 requests (RFC 9110, 9112). Pure functions over bytes:
 * no allocation, no I/O, nothing copied. The result is positions in the caller's buffer, and the
 * verdict does not depend on how the bytes are split into calls.
 *
 * What two readers could understand differently is refused, and with it the connection: nobody
 * knows where the next request begins. */
#ifndef PAWL_HTTP_PARSE_H
#define PAWL_HTTP_PARSE_H

#include "http/head.h"

enum err parse_fault_err(enum parse_fault fault);
const char *parse_fault_detail(enum parse_fault fault);

enum parse_status {
    PARSE_MORE, /* all bytes are used; the rest is yet to come */
    PARSE_DONE,
    PARSE_REFUSED, /* `fault` says why */
};

/* --- the head --- */

/* Clears everything but the fields, whose number is cleared. */
void head_begin(struct head *h);
/* `bytes` are all bytes of the request so far, from its beginning, at least as many as in the call
 * before and the same; they may have moved. Not after PARSE_DONE or PARSE_REFUSED. */
MUST_CHECK enum parse_status head_parse(struct head *h, const char *bytes, size_t len);

/* --- a chunked body --- */

struct chunks {
    enum parse_fault fault;
    uint8_t state;
    uint16_t line;       /* bytes of this chunk's line so far */
    uint16_t extensions; /* of all chunks */
    uint16_t trailers;
    uint64_t left;  /* of this chunk's data */
    uint32_t total; /* the sizes of all chunks; at most HTTP_BODY_DISCARD_MAX */
};

void chunks_begin(struct chunks *c);
/* Decodes in place: the data found in `bytes` is moved to their beginning, *ret_data bytes of it.
 * *ret_used is how many of the bytes belong to the body: all of them unless PARSE_DONE. */
MUST_CHECK enum parse_status chunks_parse(struct chunks *c, char *bytes, size_t len,
                                          size_t *ret_used, size_t *ret_data);

#endif
