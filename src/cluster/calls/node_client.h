/* Requests to other nodes, on a thread of its own, many at a time. A response comes in pieces, as
 * fast as the loop takes them: what the loop does not take stops the sender.
 *
 * A request is sent to the named node and to nobody else: no proxies, no redirects. Connections are
 * kept open. A call says at its end whether the node can have received the request, which decides
 * whether it may be sent again.
 *
 * All functions are called on the loop's thread. */
#ifndef PAWL_CLUSTER_NODE_CLIENT_H
#define PAWL_CLUSTER_NODE_CLIENT_H

#include "cluster/calls/node_call.h"

struct node_client;

/* The thread starts with the first call. NULL when memory or descriptors ran out. */
MUST_CHECK struct node_client *node_client_new(const struct node_client_config *config);
/* Every call must be over. */
void node_client_free(struct node_client *client);

/* Readable when node_client_poll() has something to do. */
int node_client_fd(const struct node_client *client);
/* Calls news() of each call that something has happened to. Call it when that is readable. */
void node_client_poll(struct node_client *client);

/* --- a call --- */

/* Begins the call; news() follows until it is over. */
void node_call_begin(struct node_client *client, struct node_call *call);
/* Ends the call soon, as NODE_CANCELLED unless it has ended before: the node sees that the
 * connection is closed. */
void node_call_cancel(struct node_call *call);
/* What has come so far. */
enum node_end node_call_end(struct node_call *call);
/* The response's status, 0 before its head has come; *ret_head has a line per header, without the
 * status line. It stays valid until the call is released. */
int node_call_head(struct node_call *call, struct str *ret_head);
/* Moves the body that has come since the last time to `out`, which must be empty. */
void node_call_take(struct node_call *call, struct buf *out);
/* Why it was not answered; "" if it was. Only when it is over. */
const char *node_call_error(const struct node_call *call);
/* Frees what the client has made for it. Only when it is over. */
void node_call_release(struct node_call *call);

#endif
