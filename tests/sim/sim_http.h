/* HTTP without a network: what a client sends reaches the real api layer, and what the server
 * answers is kept for the client to see. Takes the place of src/http's server. */
#ifndef PAWL_TESTS_SIM_HTTP_H
#define PAWL_TESTS_SIM_HTTP_H

#include "http/http.h"

struct api;
struct sim_http;

/* One server's connections. */
struct sim_http *sim_http_new(const struct env *env, http_handler *handler, void *ctx);
/* No exchange may be left. */
void sim_http_free(struct sim_http *http);
/* The machine is gone: nothing that is sent from now on reaches anybody. */
void sim_http_cut_all(struct sim_http *http);
/* The same, but the server does not notice either: it never runs again. */
void sim_http_abandon(struct sim_http *http);
/* The server stands still, or goes on: what clients do meanwhile reaches it in its next turn. */
void sim_http_pause(struct sim_http *http, bool pause);
/* Clients that do not read their streams lose them, as a real server does after a while. */
void sim_http_cut_slow(struct sim_http *http);
/* Ends what was answered in this turn. */
void sim_http_turn(struct sim_http *http);
/* Requests that are not yet answered, and streams. */
size_t sim_http_open_count(const struct sim_http *http);

enum { SIM_HEADERS_MAX = 16 };

/* A request and what came of it, as its client sees it. The client owns it. */
struct sim_exchange {
    struct sim_http *http; /* NULL once the server is gone */
    bool answered;         /* whole, or the head of a stream */
    bool cut;              /* no (further) answer will come: the connection is gone */
    bool streams;
    bool ended; /* the stream's end was seen */
    bool slow;  /* a stream is read by sim_http_read() only */
    int status;
    struct buf body; /* so far */
    struct {
        char name[48];
        char value[128];
    } headers[SIM_HEADERS_MAX];
    size_t header_count;
    char content_type[64];
    void *user;

    struct request *request; /* the server's side; NULL when it is over */
    struct sim_exchange *prev, *next;
};

struct sim_header {
    const char *name;
    const char *value;
};

struct sim_request {
    const char *method;
    const char *target; /* path and query */
    const struct sim_header *headers;
    size_t header_count;
    struct str body;
    const char *peer; /* NULL: 10.0.0.1 */
};

/* The server gets the request at once; the answer may come in this call or in a later turn. */
struct sim_exchange *sim_http_send(struct sim_http *http, const struct sim_request *request);
/* The value of an answer's header; NULL: absent. */
const char *sim_http_answer_header(const struct sim_exchange *x, const char *name);
/* Takes what a slow client's stream has to give. */
void sim_http_read(struct sim_exchange *x);
/* The client closes its connection, if it is still open, and forgets the exchange. */
void sim_http_close(struct sim_exchange *x);

#endif
