/* One call to another node: what is asked, and what has come of it. */
#ifndef PAWL_CLUSTER_NODE_CALL_H
#define PAWL_CLUSTER_NODE_CALL_H

#include "base/buf.h"

struct node_client;
struct node_transfer;

struct node_client_config {
    const char *self; /* where this process listens; whatever certificate it has. NULL: unknown */
    const char *ca;   /* PEM; whose certificates are believed. NULL: the system's */
    const char *cert; /* PEM; shown to nodes that ask for one. NULL: none */
    const char *key;
};

enum node_end {
    NODE_UNDER_WAY,
    NODE_ANSWERED,  /* with the whole response */
    NODE_UNREACHED, /* nothing of the request was sent */
    NODE_BROKEN,    /* the node may have acted on it, but no whole response came */
    NODE_CANCELLED, /* by this node; the other one may have acted on it */
};

struct node_header {
    struct str name;
    struct str value;
};

struct node_call {
    /* The request; borrowed until the call is over. */
    const char *url; /* http://HOST:PORT of the node */
    const char *method;
    const char *target; /* path and query as they are sent */
    const struct node_header *headers;
    size_t header_count;
    struct str body;
    bool repeatable; /* may be sent again when a kept connection turns out to be closed */
    int64_t head_ms; /* how long the head of the response may take; 0: as long as it likes */
    /* The head has come, or some of the body, or the call is over. */
    void (*news)(struct node_call *call);
    void *owner;

    /* The client's own; the lock guards all but `transfer`. */
    struct node_client *client;
    struct node_transfer *transfer; /* the thread's */
    struct node_call *next_order, *next_news;
    unsigned orders;
    bool has_news;
    enum node_end end;
    int status;
    struct buf head;
    struct buf body_in;
    bool paused;
    char error[256];
};

#endif
