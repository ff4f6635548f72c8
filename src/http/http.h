/* HTTP/1.1 for the rest of pawl: a parsed request goes in, a reply comes out, now or later.
 * Everything runs on one thread, the one that calls http_server_turn().
 *
 * Every error is problem+json, also those that the parser finds. A request that could be read in
 * two ways is refused, and its connection closed. */
#ifndef PAWL_HTTP_HTTP_H
#define PAWL_HTTP_HTTP_H

#include "base/arena.h"
#include "base/env.h"
#include "base/metrics.h"
#include "base/problem.h"

struct http_server;
struct http_request;

/* --- a request --- */

struct http_param {
    struct str name;
    struct str value;
};

struct http_request {
    struct str method;
    struct str path;  /* as sent, not decoded, without the query */
    struct str query; /* as sent */
    struct str body;
    struct str peer;    /* the address it came from */
    struct arena arena; /* lives as long as the request */
    char trace_id[33];
    struct str traceparent; /* its first 55 characters, when it is valid; ptr NULL otherwise */
    int64_t begun_ns;
    bool of_node;      /* another node has sent it for its client: set by the handler */
    bool trace_is_new; /* the client has sent no trace; that node has begun `traceparent` */
    /* Called when the client has closed the connection, or its side of it, before it was answered:
     * nobody waits for the answer, which must still be given. May be NULL. */
    void (*disconnected)(void *user);
    /* Called when the answer could not be sent whole; before `cleanup`. May be NULL. */
    void (*unsent)(void *user);
    /* Called when the last hold is dropped; replies may point to memory that it frees. */
    void (*cleanup)(void *user);
    void *user;
};

/* Text of a header, ptr NULL when it is absent. *ret_count (may be NULL) is how often it was
 * sent. */
struct str http_header_named(const struct http_request *req, struct str name, size_t *ret_count);
/* The same. Names are mostly constants, whose length the compiler knows. */
static inline struct str http_header(const struct http_request *req, const char *name,
                                     size_t *ret_count)
{
    return http_header_named(req, str_of(name), ret_count);
}
/* All values of a header that is a list, in order, joined by commas; it lives as long as the
 * request. ptr NULL: absent, or out of memory. */
struct str http_header_list(struct http_request *req, const char *name);
/* Every header in the order they were sent: start with *at = 0; false after the last. */
bool http_header_next(const struct http_request *req, size_t *at, struct http_param *ret);
/* Takes the next name=value off a query; both are still encoded, and a value that is missing has
 * ptr NULL. False at the end. */
bool http_query_next(struct str *rest, struct http_param *ret);
/* Percent-decodes; the text lives as long as the request. False when it is malformed or holds a
 * NUL.
 */
MUST_CHECK bool http_decode(struct http_request *req, struct str encoded, struct str *ret);

/* A request lives while it is held: by its connection, and by the code that works on it. */
void http_request_hold(struct http_request *req);
void http_request_drop(struct http_request *req);

/* The request's connection counts for this tenant from now on, until a request on it counts for
 * another. A tenant with too many connections loses the one that has been idle longest; false when
 * none is idle, or memory ran out. */
MUST_CHECK bool http_count_for(struct http_request *req, struct str tenant);

/* --- a reply: exactly one per request --- */

struct http_reply {
    int status;
    struct str content_type;  /* a literal; empty: there is no content */
    struct str body;          /* stays valid as long as the request */
    struct str cache_control; /* a literal; empty: no-store */
    /* Up to HTTP_REPLY_HEADERS_MAX; names are literals, values live as long as the request. */
    struct {
        const char *name;
        struct str value;
    } headers[12];
    size_t header_count;
    int file_fd;      /* > 0: the body is this file, closed when it is sent */
    int64_t head_len; /* to HEAD, without a body: how long that of GET is; 0: that of `body` */
    struct str route; /* for metrics; ptr NULL: none matched */
};

void http_reply_init(struct http_reply *reply, int status, struct str content_type,
                     struct str body);
void http_reply_add(struct http_reply *reply, const char *name, struct str value);
void http_send(struct http_request *req, const struct http_reply *reply);
/* The reply that http_send_problem() sends, for one that needs more headers. */
void http_problem_reply(struct http_request *req, const struct problem *p, struct http_reply *ret);
/* The problem as problem+json, with Retry-After and the limit's fields where they belong. */
void http_send_problem(struct http_request *req, const struct problem *p, struct str route,
                       const char *allow);
/* Can the client still receive an answer? No when it has closed the connection, or only its own
 * side: clients that do so and still read are too rare to hand them jobs that others wait for. */
bool http_is_connected(const struct http_request *req);
/* Instead of a reply: closes the connection. */
void http_hang_up(struct http_request *req);
/* The request is answered, but its client has not taken all of the answer: closes the connection.
 */
void http_cut(struct http_request *req);
/* True when the request has been answered. */
bool http_is_answered(const struct http_request *req);

/* --- a streamed reply --- */

enum http_piece {
    HTTP_PIECE,
    HTTP_LATER,
    HTTP_END,
    HTTP_BROKEN, /* there is more, but it cannot be read: the client sees that the end is missing */
};

/* The source of its text, called as fast as the client reads: nothing is buffered for a slow
 * client. Both are called with req->user. */
struct http_source {
    /* The next piece, not empty, borrowed until the next call. HTTP_LATER: nothing yet, and
     * http_stream_wake() follows. */
    enum http_piece (*next)(void *user, struct str *ret);
    /* The client has disconnected, has not read a byte for HTTP_STREAM_STALL_MS, or all is sent. */
    void (*gone)(void *user);
};

/* Sends the head now, and each piece when there is one. */
void http_send_stream(struct http_request *req, const struct http_reply *reply,
                      const struct http_source *source);
/* There may be more; not after `gone`. */
void http_stream_wake(struct http_request *req);

/* --- the server --- */

typedef void http_handler(void *ctx, struct http_request *req);
/* `route` is the reply's. */
typedef void http_observer(void *ctx, const struct http_request *req, int status, struct str route);

struct http_config {
    const char *listen;   /* HOST:PORT; port 0 picks one */
    const char *tls_cert; /* PEM files; NULL: plain HTTP */
    const char *tls_key;
    const char *tls_client_ca; /* PEM; clients need a certificate signed by one of these. NULL: none
                                  needed */
    const struct env *env;
    struct metrics *metrics; /* NULL: its requests are not counted */
    http_handler *handler;
    http_observer *observer; /* called when a request that was answered is over; NULL: nobody */
    void *handler_ctx;       /* of both */
    size_t connections_per_peer_max;   /* 0: HTTP_CONNECTIONS_PER_PEER_MAX */
    size_t connections_per_tenant_max; /* 0: HTTP_CONNECTIONS_PER_TENANT_MAX */
};

/* The process must ignore SIGPIPE. */
MUST_CHECK enum err http_server_start(const struct http_config *config, struct problem *p,
                                      struct http_server **ret);
/* Reads the files of TLS again, which the server must have. What is connected goes on as it is; on
 * failure so does everything. */
MUST_CHECK enum err http_server_reload(struct http_server *server, struct problem *p);
/* "http://127.0.0.1:7295" */
const char *http_server_url(const struct http_server *server);
/* Is this HOST:PORT reachable from this machine only? */
bool http_is_loopback(const char *listen);

/* For the caller's poll(): readable when a turn has something to do, and how long it may sleep
 * (-1: forever). */
int http_server_fd(const struct http_server *server);
int http_server_timeout_ms(const struct http_server *server);
void http_server_turn(struct http_server *server);

/* Accepts no new connections, closes idle ones, and each other one after its answer. */
void http_server_drain(struct http_server *server);
size_t http_server_connections(const struct http_server *server);
/* Call after every request was answered. Closes what is still open. */
void http_server_free(struct http_server *server);

#endif
