/* Connections and their requests, as the parts of the http layer see them.
 *
 * One thread, one epoll, edge-triggered: an event only notes that a socket is readable or writable,
 * and a connection runs until the socket says "not now". A connection has one request at a time, so
 * pipelined requests are answered in order and wait in the kernel. An idle connection holds no
 * memory but its struct.
 *
 * http_send() and its like only note the answer. Everything else happens in http_server_turn(), so
 * no callback of the handler's is ever called from within a call of its own. */
#ifndef PAWL_HTTP_INTERNAL_H
#define PAWL_HTTP_INTERNAL_H

#include "http/http.h"
#include "http/parse.h"
#include "http/tls.h"

#include <sys/types.h>

enum conn_phase {
    CONN_IDLE,    /* between two requests */
    CONN_HEAD,    /* the head is arriving, or the first one is waited for */
    CONN_BODY,    /* the body is arriving */
    CONN_WORKING, /* the handler has the request, or a stream has nothing to send */
    CONN_REPLY,   /* the answer is being sent */
    CONN_LINGER,  /* our side is closed; what the client still sends is discarded */
    CONN_CLOSED,  /* freed at the end of the turn */
    CONN_PHASES
};

enum {
    HTTP_PARTS_MAX = 4, /* of an answer that are sent at once */
    PEER_TEXT_MAX = 46, /* INET6_ADDRSTRLEN */
    TLS_RECORD_MAX = 16 * KIB,
};

struct conn {
    struct http_server *server;
    struct conn *prev, *next; /* in the list of its phase */
    struct conn *next_ready;
    struct request *request; /* NULL while idle */
    struct peer *peer;       /* its address */
    struct peer *tenant;     /* of its last request; NULL: none yet */
    struct tls_conn *tls;    /* NULL: plain */
    int fd;
    uint8_t phase;
    bool is_ready;    /* in the list of those that run in the next turn */
    bool readable;    /* as far as we know */
    bool writable;    /* as far as we know */
    bool half_closed; /* the client will send nothing more */
    bool read_waits;  /* TLS has to write before it can read on */
    bool write_waits; /* TLS has to read before it can write on */
    int64_t since_ms; /* when the phase, or its last wait for the client, began */
    uint64_t moved;   /* bytes since then */
};

struct request {
    struct http_request pub; /* first: the handler's view */
    struct http_server *server;
    struct conn *conn; /* NULL once the connection is gone */
    struct request *next_orphan;
    int holders;
    char peer[PEER_TEXT_MAX]; /* outlives the connection */

    char *in; /* the head, then the body, then what was sent ahead */
    size_t in_len, in_cap;
    size_t body_len; /* of a chunked body: decoded so far */
    struct chunks chunks;
    struct request *ahead; /* the next request on this connection, if some of it has come */
    bool discards;         /* the body is too large: it is read and dropped */
    bool complete;         /* head and body are there */

    bool in_handler; /* the connection goes on when the handler returns: no need to wake it */
    bool answered;
    bool hung_up; /* without an answer, or without the rest of it */
    bool last;    /* the connection ends with this answer */
    bool streams;
    bool is_sent;
    int status;
    struct str route;
    struct str parts[HTTP_PARTS_MAX]; /* of the answer, not yet sent */
    size_t part_count;
    int file_fd; /* -1: none */
    int64_t file_at, file_left;

    const struct http_source *source; /* of a streamed answer; NULL after its end */
    bool chunked_reply;
    bool ended;          /* the source has no more */
    char *gathered;      /* what the client did not take at once of several pieces; freed with it */
    char chunk_line[24]; /* before a large piece */

    struct head head; /* last: its fields are not cleared */
};

struct conn_list {
    struct conn *first, *last;
};

struct http_server {
    struct http_config config;
    int epoll_fd;
    int listen_fd; /* -1: none any more */
    char url[160];
    size_t conn_count, conn_max;
    struct conn_list lists[CONN_PHASES];
    struct conn *ready_first, *ready_last;
    struct request *orphans; /* answered after their connection was gone */
    struct peers *peers, *tenants;
    struct tls *tls; /* NULL: plain */
    int64_t now_ms;
    int64_t next_sweep_ms;
    int64_t accept_at_ms; /* no earlier: there were no descriptors left */
    bool draining;
    bool gathers;   /* answers of requests that are being read: they leave together */
    int handshakes; /* that were taken further in this turn */
    struct metric *durations;
    struct metric *dropped;
    size_t drops_unlogged;
    int64_t log_drops_at_ms; /* no earlier */
    int64_t date_s;          /* the second that `date` names */
    char date[64];           /* the field with its line end */
    char scratch[HTTP_GATHER_MAX];
    char record[TLS_RECORD_MAX]; /* parts of an answer on their way into one record */
};

static inline struct request *request_of(const struct http_request *req)
{
    return (struct request *)(uintptr_t)req;
}

/* --- conn.c --- */

/* NULL when memory ran out; the descriptor then still belongs to the caller. */
MUST_CHECK struct conn *conn_new(struct http_server *s, int fd, struct peer *peer);
/* Goes on with whatever the connection can do now. */
void conn_run(struct conn *c);
void conn_enter(struct conn *c, enum conn_phase phase);
/* It runs in the next turn, or later in this one. */
void conn_wake(struct conn *c);
/* It counts for no tenant any more. */
void conn_leave_tenant(struct conn *c);
/* At once. Its request, if the handler has it, lives on without it. */
void conn_close(struct conn *c);

/* --- request.c --- */

/* NULL when memory ran out. */
MUST_CHECK struct request *request_new(struct conn *c);
/* The connection has no more to do with it: tells whoever waits for that, and drops its hold. */
void request_over(struct request *r);
/* Makes its buffer at least so large; false when memory ran out. */
MUST_CHECK bool request_reserve(struct request *r, size_t cap);

/* --- io.c: what goes over a socket --- */

/* Instead of a number of bytes. */
enum { IO_AGAIN = -1, IO_BROKEN = -2, IO_PLAIN = -3 };

/* 0 at the end of what the client sends. IO_PLAIN: a client that should speak TLS has sent a
 * request in plain text, and can be answered in plain text. Notes in the connection what the socket
 * says of itself. */
ssize_t io_read(struct conn *c, char *to, size_t len);
ssize_t io_write(struct conn *c, const struct str *parts, size_t count);
/* Up to `left` bytes of a file from `at` on. IO_BROKEN also when the file is shorter. */
ssize_t io_send_file(struct conn *c, int fd, int64_t at, int64_t left);
/* Nothing more will be sent. */
void io_end(struct conn *c);
void io_close(struct conn *c);
/* Has the client closed its side? Asks the socket. */
bool io_is_half_closed(const struct conn *c);

/* --- receive.c --- */

/* Reads and parses until the request is complete; false: it has to wait, or the connection is
 * gone. */
bool receive(struct conn *c);

/* --- reply.c --- */

/* The answer has been given: false when it cannot be rendered. */
MUST_CHECK bool reply_begin(struct request *r, const struct http_reply *reply);
/* Sends what there is; false: it has to wait, or the connection is gone. */
bool reply_send(struct conn *c);

/* --- stream.c --- */

/* Puts the next pieces into r->parts. */
enum http_piece stream_fill(struct request *r);
/* The client has not taken all of it; false when memory ran out. */
MUST_CHECK bool stream_keep(struct request *r);

/* --- deadlines.c --- */

/* Cuts off clients that are too slow, and idle ones after a while. */
void deadlines_sweep(struct http_server *s);
/* Until the next sweep, in milliseconds; -1: nothing to wait for. */
int deadlines_next_ms(const struct http_server *s);
/* Counts a connection that the server ends for its own reasons, and logs it now and then. */
void deadlines_count(struct http_server *s, const char *reason);

/* --- peers.c --- */

/* One address or tenant, with as many connections as it has. */
struct peer;
struct peers;

MUST_CHECK struct peers *peers_new(void);
void peers_free(struct peers *peers);
struct sockaddr_storage;
/* Takes a place for another connection of this address; NULL when memory ran out. */
MUST_CHECK struct peer *peers_join(struct peers *peers, const struct sockaddr_storage *address);
MUST_CHECK struct peer *peers_join_tenant(struct peers *peers, struct str tenant);
void peers_leave(struct peers *peers, struct peer *peer);
size_t peer_count(const struct peer *peer);
/* Its address, PEER_TEXT_MAX bytes, or its tenant; for as long as it has connections. */
const char *peer_text(const struct peer *peer);

/* --- trace.c --- */

/* From the header traceparent if that is valid, or a new one. */
void trace_set(struct request *r);

#endif
