/* One request that another node answers: it is sent there, and what comes back goes to the client.
 * A short response is passed on when it is whole, so that a node that dies within it has not
 * answered. Everything else (event streams, files) is passed on piece by piece, as fast as the
 * client reads. A client that leaves ends the request at the other node too. */
#ifndef PAWL_CLUSTER_FORWARD_H
#define PAWL_CLUSTER_FORWARD_H

#include "cluster/calls/node_client.h"
#include "http/http.h"

/* On the request: by whom, for whom, and signed (node_auth.h). */
#define FORWARDED_HEADER "X-Pawl-Forwarded"
#define NEW_TRACE_HEADER "X-Pawl-New-Trace" /* the client has sent none */
/* On a response: why the node did not take the request. Nothing was done. */
#define NOT_TAKEN_HEADER "X-Pawl-Not-Taken"

enum forward_end {
    FORWARD_ANSWERED, /* the client has its answer, or has left */
    /* The request is not answered. */
    FORWARD_NOT_TAKEN, /* nothing was done: it may be sent again, to whoever takes it */
    FORWARD_UNKNOWN,   /* it may have been done: it may be sent again if it is repeatable */
    FORWARD_SKIPPED,   /* `passes` did not like the answer */
};

/* What follows a stream. */
enum forward_more {
    FORWARD_END,    /* nothing: it is whole */
    FORWARD_NEXT,   /* the stream of another node */
    FORWARD_BROKEN, /* the rest cannot be had: the client sees that the end is missing */
};

struct forward {
    /* Set these, zero the rest. */
    struct node_client *client;
    struct http_request *req; /* its user and callbacks belong to the forward */
    const char *url;          /* http://HOST:PORT of the node */
    struct str token;         /* the value of FORWARDED_HEADER */
    struct str method;        /* instead of the request's; ptr NULL: the same */
    struct str query;         /* instead of the request's; ptr NULL: the same */
    struct str body;          /* instead of the request's; ptr NULL: the same */
    struct str route;         /* for metrics */
    bool repeatable;
    bool takes_long;        /* the answer may begin whenever it likes */
    bool collects;          /* `passes` sees every answer that has a length, however long it is */
    bool keeps_credentials; /* the headers that say who sends it go along */
    bool ends_well;         /* a stream that ends early ends as if it were whole: set it any time */
    /* Is the client to have this answer? Asked of short ones; it may change the reply, with texts
     * that live as long as the request or are in `piece`. NULL: every answer. */
    bool (*passes)(struct forward *f, struct http_reply *reply);
    /* The node has answered, but the client has left before it got all of that. Answers are kept
     * whole for it, however long they are. NULL: nobody needs to know. */
    void (*lost)(struct forward *f, struct str body);
    /* The stream of one node has been passed on whole: sets `url` and `token` for the next one and
     * says so. NULL: there is only one. */
    enum forward_more (*more)(struct forward *f);
    /* It is over. With any end but FORWARD_ANSWERED it is up to the callee to answer, or to begin
     * the forward again. The request is held until it returns. */
    void (*over)(struct forward *f, enum forward_end end);
    void *owner;

    /* The forward's own. */
    struct node_call call;
    struct buf piece; /* of a stream, or of a whole answer all that has come */
    char reason[32];  /* of FORWARD_NOT_TAKEN: what the node says; "" when it was not reached */
    uint8_t mode;
    bool follows;   /* the stream of another node has been passed on before */
    bool part_over; /* a stream has come whole; `more` is asked when it has been passed on */
    bool gone;      /* the client has left, or has everything */
    bool call_over; /* nothing more comes */
    enum node_end end;
};

/* The forward, and everything that it points to, must live as long as the request. */
void forward_begin(struct forward *f);
/* Ends it soon: a stream ends, any other request is over as FORWARD_UNKNOWN. */
void forward_cancel(struct forward *f);
/* Has nothing come back yet? */
bool forward_is_waiting(const struct forward *f);
/* Says why a request that was not answered was not; for the log. */
const char *forward_error(const struct forward *f);

#endif
