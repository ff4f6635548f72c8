/* How nodes believe each other. A forwarded request carries a token: which shard it is for, who
 * sends it, and a MAC by the secret that only nodes can read in the directory. The MAC covers the
 * method, the target and the body too, and the session of the node it is for, so that a token is
 * good for one request to one node. Each token has a number, and is taken once. */
#ifndef PAWL_CLUSTER_NODE_AUTH_H
#define PAWL_CLUSTER_NODE_AUTH_H

#include "core/txn/op.h"
#include "http/http.h"

enum { NODE_TOKEN_MAX = 1024 };

struct node_auth;

/* `session` names this start of this node, and is never used again. NULL when memory ran out. */
MUST_CHECK struct node_auth *node_auth_new(struct str secret, struct str session);
void node_auth_free(struct node_auth *auth);

struct node_claim {
    unsigned shard;
    bool has_caller; /* false: the route is open to everybody, or: */
    bool identifies; /* the node finds out itself, from the key or session in the request */
    struct caller caller;
};

/* What is signed of a request. */
struct node_message {
    struct str method, path, query, body;
};

/* The token for a request to the node with this session. `now_ms` is by a clock that all nodes
 * share. ptr NULL when memory ran out. */
MUST_CHECK struct str node_auth_sign(struct node_auth *auth, const struct node_message *message,
                                     struct str to_session, int64_t now_ms,
                                     const struct node_claim *claim, struct arena *arena);

enum node_verdict {
    NODE_BELIEVED,
    NODE_FORGED,   /* not by a node of this cluster, or not for this session or request */
    NODE_OUTDATED, /* too old, or the clocks differ */
    NODE_REPLAYED, /* it was taken before, or so many after it that it cannot be told */
};

/* What the token says; texts live as long as the request. The token counts as taken. */
MUST_CHECK enum node_verdict node_auth_check(struct node_auth *auth, struct http_request *req,
                                             struct str token, int64_t now_ms,
                                             struct node_claim *ret);
const char *node_verdict_name(enum node_verdict verdict);

#endif
