/* One call to a node on libcurl. On the client's thread only. */
#ifndef PAWL_CLUSTER_NODE_TRANSFER_H
#define PAWL_CLUSTER_NODE_TRANSFER_H

#include "cluster/calls/node_call.h"

#include <curl/curl.h>

/* Who gets what has come. */
struct node_sink {
    void (*head)(struct node_transfer *t, int status); /* may take t->head over */
    /* False: no room, the transfer has to pause. */
    bool (*body)(struct node_transfer *t, const char *bytes, size_t len);
};

struct node_transfer {
    struct node_call *call;
    const struct node_sink *sink;
    struct node_transfer *prev, *next; /* of those under way */
    CURL *easy;
    struct curl_slist *headers;
    CURLcode setup; /* the first option that could not be set */
    bool sent;      /* some of the request may have left */
    bool head_complete;
    int64_t deadline_ms; /* of the head, then of the next piece; INT64_MAX: none */
    bool late;
    struct buf head; /* until it is complete */
    char error[CURL_ERROR_SIZE];
};

/* NULL when memory ran out. */
MUST_CHECK struct node_transfer *node_transfer_new(struct node_call *call,
                                                   const struct node_client_config *config,
                                                   const struct node_sink *sink);
void node_transfer_free(struct node_transfer *t);
/* How it ended, by libcurl's code. */
enum node_end node_transfer_end(const struct node_transfer *t, CURLcode code);
const char *node_transfer_error(const struct node_transfer *t, CURLcode code);

#endif
