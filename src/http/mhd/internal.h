/* What the parts of the layer on libmicrohttpd share. */
#ifndef PAWL_HTTP_MHD_INTERNAL_H
#define PAWL_HTTP_MHD_INTERNAL_H

#include "base/limits.h"
#include "http/http.h"
#include "http/listen.h"

#include <microhttpd.h>

/* One TCP connection, watched against slow clients. */
enum conn_phase {
    CONN_HEAD,    /* waits for a request, or its head is arriving */
    CONN_BODY,    /* the body is arriving */
    CONN_WORKING, /* the handler has it; the connection is suspended or about to be answered */
    CONN_REPLY,   /* the answer is being sent */
};

struct request;

struct conn {
    struct request *request; /* begun and not yet ended */
    struct conn *prev, *next;
    int fd;
    char peer[48]; /* the client's address as text, once it was needed */
    enum conn_phase phase;
    int64_t since_ms;      /* when the phase began or its first byte arrived; -1: no byte yet */
    uint64_t bytes_before; /* what had been received when the last request ended */
    bool first;            /* no request has ended on it yet */
    bool streaming;        /* its answer is a file or a stream: it may take long */
};

struct request {
    struct http_request pub; /* first: the handler's view */
    struct http_server *server;
    struct MHD_Connection *connection; /* NULL once the connection is gone */
    struct conn *conn;
    int holders;
    struct http_param
        *headers; /* all of them, read once; they live as long as the connection has the request */
    size_t header_count;
    struct buf body;
    size_t discarded; /* bytes of a body that is too large */
    bool dispatched;
    bool suspended;
    bool answered;
    bool queued;
    bool last;    /* the connection ends with this answer */
    bool hung_up; /* it ends without one */
    struct http_reply reply;

    /* For a streamed reply. */
    bool streams;
    const struct http_source *source; /* NULL after the end */
    struct str unsent;                /* of the piece under way */
};

struct http_server {
    struct http_config config;
    struct MHD_Daemon *daemon;
    int listen_fd;
    char url[160];
    struct conn *conns;
    size_t conn_count;
    int64_t next_sweep_ms;
    bool draining;
    struct metric *durations;
};

static inline struct request *request_of(const struct http_request *req)
{
    return (struct request *)(uintptr_t)req;
}

/* request.c */
/* False when memory ran out. */
MUST_CHECK bool request_read_headers(struct request *r);

/* trace.c */
/* From the header traceparent if that is valid. */
void request_set_trace(struct request *r);

/* conns.c */
void conn_notify(void *ctx, struct MHD_Connection *connection, void **socket_context,
                 enum MHD_ConnectionNotificationCode code);
void conn_enter(struct http_server *server, struct conn *conn, enum conn_phase phase);
void conns_sweep(struct http_server *server);

/* head.c */
/* What is wrong with the head of a request, or NULL. After a fault the start of the next request is
 * unknown. */
const char *head_fault(const struct request *r, const char *version);

/* parser_errors.c */
void parser_error_log(void *ctx, const char *fmt, va_list args);
/* libmicrohttpd's own functions behind the linker's wrappers. */
struct MHD_Response *__real_MHD_create_response_from_buffer(size_t size, void *buffer,
                                                            enum MHD_ResponseMemoryMode mode);
size_t __real_MHD_str_to_uint64_n_(const char *text, size_t len, uint64_t *ret);
size_t __wrap_MHD_str_to_uint64_n_(const char *text, size_t len, uint64_t *ret);

/* stream.c */
struct MHD_Response *stream_response(struct request *r);
void stream_over(struct request *r);

/* reply.c */
enum MHD_Result reply_queue(struct request *r);
/* The headers that every answer has. */
void reply_add_constants(struct MHD_Response *response);
/* Resumes a suspended connection. */
void reply_resume(struct request *r);

#endif
