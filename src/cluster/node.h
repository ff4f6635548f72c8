/* A node: one pawl server and the shards that it serves, each with an engine and an api of its own,
 * all on the one HTTP loop. On PostgreSQL the directory says which shards are this node's; they
 * come and go while the server runs. The embedded store is a node with one shard that it always
 * owns, and no directory.
 *
 * All functions are called on the HTTP loop's thread. Texts that they return are valid until the
 * next node_poll(). */
#ifndef PAWL_CLUSTER_NODE_H
#define PAWL_CLUSTER_NODE_H

#include "api/api.h"
#include "cluster/node_config.h"

struct node;

/* Opens the embedded store; or initializes the directory if the database is empty, and connects to
 * it. The caller owns *ret. */
MUST_CHECK enum err node_open(const struct node_config *config, struct problem *p,
                              struct node **ret);
/* The server listens: becomes a node of the cluster that others can reach, takes its share of the
 * shards that are free, and opens them. Returns when they serve. A process that has this
 * node's name is put out. */
MUST_CHECK enum err node_join(struct node *node, const char *listen_url, struct problem *p);
/* Every request must have been answered. */
void node_close(struct node *node);

/* --- shards --- */

enum node_shard_state {
    SHARD_AWAY,    /* another node has it, or nobody */
    SHARD_OPENING, /* this node has taken it and is about to serve it */
    SHARD_HERE,    /* this node serves it */
    SHARD_LEAVING, /* this node finishes what is under way; new changes are refused */
};

struct node_shard {
    enum node_shard_state state;
    bool answers;    /* requests are for this node: it is HERE, or leaves and nobody takes it */
    struct api *api; /* NULL: not HERE and not LEAVING */
    struct engine *engine;
    struct str owner;   /* a node's name, by the last reading of the directory; ptr NULL: none */
    struct str url;     /* where that node is reached; ptr NULL: its lease is over, or no owner */
    struct str session; /* of that node: new with every start */
    int64_t epoch;
};

size_t node_shard_count(const struct node *node);
/* The shard that a tenant lives in: stable, unless the tenant is moved. */
size_t node_shard_of(const struct node *node, struct str tenant);
struct node_shard node_shard_at(const struct node *node, size_t shard);
/* Puts the URL of a shard's store, for a reader of it, whoever owns the shard; ask buf_ok(). */
void node_put_shard_store(const struct node *node, size_t shard, struct buf *out);

/* What concerns the server and not a tenant: health, metrics, the cluster, the API's description,
 * the console's files. Of the embedded store: its only api. */
struct api *node_api(const struct node *node);

/* --- the cluster --- */

bool node_is_embedded(const struct node *node);
struct str node_name(const struct node *node);
/* What nodes prove to each other that they are of one cluster; 64 characters. Empty: embedded. */
struct str node_secret(const struct node *node);
/* Grows with every reading of the directory. */
uint64_t node_view(const struct node *node);
/* Reads the directory as soon as possible; node_view() then grows, and the loop turns. */
void node_refresh(struct node *node);
/* How long ago the directory was read. */
int64_t node_view_age_ms(const struct node *node);
/* Grows when an API key was made, changed or revoked anywhere in the cluster. */
uint64_t node_auth_epoch(const struct node *node);
/* A text that is new with every start of a node. */
struct str node_session(const struct node *node);
/* The database's clock, as near as the last reading of the directory tells. */
int64_t node_now_ms(const struct node *node);

/* What it counts, and its front too. */
const struct node_metrics *node_metrics(const struct node *node);

/* --- the loop --- */

/* Readable when node_poll() has something to do. */
int node_event_fd(const struct node *node);
void node_poll(struct node *node, bool readable);
int node_timeout_ms(const struct node *node);
bool node_expects_more(const struct node *node);
/* At the end of each round. */
void node_round_end(struct node *node);

/* An http_observer; ctx is a struct node. */
void node_request_over(void *ctx, const struct http_request *req, int status, struct str route);

/* --- the end --- */

/* Refuses new changes, ends waits and streams, and hands each shard over once it is quiet. */
void node_drain(struct node *node);
/* Do clients still wait for answers? If no other node takes its shards, a node that drains keeps
 * them until none does. */
void node_has_clients(struct node *node, bool any);
/* True when nothing is under way and every shard has been handed over. */
bool node_idle(const struct node *node);
/* True when the process must stop: the embedded store failed, or another process has this node's
 * name. */
bool node_failed(const struct node *node);

#endif
