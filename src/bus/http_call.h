/* One outgoing HTTP call: the request and, when it has ended, the response. Its maker submits it to
 * an http_caller (http_caller.h) and collects it there when it has ended. */
#ifndef PAWL_BUS_HTTP_CALL_H
#define PAWL_BUS_HTTP_CALL_H

#include "base/arena.h"
#include "base/buf.h"

/* A table is read by its columns. */
/* clang-format off */
#define CALL_ENDS(X)                                                                               \
    /* symbol                   code                   the same call may succeed later */          \
    X(CALL_ANSWERED,            "ANSWERED",            false) /* whatever the status */            \
    X(CALL_TIMED_OUT,           "TIMED_OUT",           true)                                       \
    X(CALL_REQUEST_INVALID,     "REQUEST_INVALID",     false)                                      \
    X(CALL_ADDRESS_REFUSED,     "ADDRESS_REFUSED",     true)  /* or no such name */                \
    X(CALL_CONNECT_FAILED,      "CONNECT_FAILED",      true)                                       \
    X(CALL_TLS_FAILED,          "TLS_FAILED",          true)                                       \
    X(CALL_CONNECTION_LOST,     "CONNECTION_LOST",     true)                                       \
    X(CALL_TOO_MANY_REDIRECTS,  "TOO_MANY_REDIRECTS",  false)                                      \
    X(CALL_REDIRECT_REFUSED,    "REDIRECT_REFUSED",    false)                                      \
    X(CALL_RESPONSE_TOO_LARGE,  "RESPONSE_TOO_LARGE",  false)                                      \
    X(CALL_FAILED,              "CALL_FAILED",         true)  /* anything else */                  \
    X(CALL_ABORTED,             "CALL_ABORTED",        true)  /* by http_caller_abort() */
/* clang-format on */

enum call_end {
#define X(symbol, code, again) symbol,
    CALL_ENDS(X)
#undef X
        CALL_END_COUNT
};

const char *call_end_code(enum call_end end);
bool call_end_retryable(enum call_end end);

struct http_call_header {
    struct str name;
    struct str value;
};

struct http_call_request {
    struct str method;
    struct str url; /* http or https, without a user name */
    const struct http_call_header *headers;
    size_t header_count;
    struct str body;    /* ptr NULL: none */
    int64_t timeout_ms; /* from the submission to the last byte, redirects included */
    int redirects_max;  /* 0: a redirect is a response like any other */
};

enum { CALL_DETAIL_MAX = 320 };

struct http_call {
    void *owner; /* for its maker */
    struct http_call_request request;

    /* The result. */
    enum call_end end;
    char detail[CALL_DETAIL_MAX]; /* for people; "" when it was answered */
    int status;
    struct buf head; /* lines of `name: value`; see http_call_header() */
    struct buf body;

    /* For the http_caller. */
    struct http_call *next;
    int64_t deadline_ms;
    struct arena arena; /* what the request points to */
};

/* Copies the request. NULL: out of memory. The maker owns the call until it is submitted, and again
 * when it is collected. */
MUST_CHECK struct http_call *http_call_new(const struct http_call_request *request);
void http_call_free(struct http_call *call);

/* The response's header lines one by one: *at is 0 at first. Text is UTF-8. */
bool http_call_next_header(const struct http_call *call, size_t *at, struct http_call_header *ret);
/* The first of this name, in any case; ptr NULL when there is none. */
struct str http_call_header(const struct http_call *call, struct str name);

/* Sets how it ended; for the http_caller. */
void http_call_end(struct http_call *call, enum call_end end, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

#endif
