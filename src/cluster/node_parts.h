/* A node's own members, for the files of this folder that are parts of it. */
#ifndef PAWL_CLUSTER_NODE_PARTS_H
#define PAWL_CLUSTER_NODE_PARTS_H

#include "api/node.h"
#include "cluster/directory.h"
#include "cluster/host.h"
#include "cluster/node_metrics.h"
#include "cluster/openers.h"

/* What the node knows of a shard beside the directory. */
struct shard_slot {
    struct host *host;      /* that opens or serves it, or hands it over; NULL: none */
    int64_t wanted_epoch;   /* that the shard has once this node's wish was granted */
    enum shard_taken taken; /* how, if the wish is granted */
    bool releasing;         /* until a view shows that it has another owner */
    int64_t retry_at_ms;    /* after a failure, by the monotonic clock */
    int failures;           /* in a row */
};

struct node {
    struct node_config config;
    char name[NODE_NAME_LEN_MAX + 1];
    struct directory *directory; /* NULL: the store is embedded */
    struct openers *openers;
    struct openers *closers; /* apart: what closes waits for a database that may be away */
    bool wants_refresh;      /* a request seems to be at the wrong node */
    int64_t refreshed_at_ms; /* the last time for that reason */
    int epoll_fd;            /* every engine's descriptor, the directory's and the openers' */
    int open_fd;             /* the openers' and the closers' */
    struct host *hosts;
    struct shard_slot slots[CLUSTER_SHARDS_MAX];
    struct api_node api_node;
    struct api *api; /* NULL: the embedded store's only one */
    struct node_metrics metrics;
    struct problem *opening_problem; /* while the node joins: what failed */
    bool stopping;
    bool has_clients; /* while it stops: some wait for answers */
};

/* --- node_shards.c: shards come and go --- */

/* After a new reading of the directory. */
void node_adopt_view(struct node *node);
/* What has been opened or closed, or can be closed now. */
void node_tend_hosts(struct node *node);
/* Hands all shards over. */
void node_leave_all(struct node *node);
bool node_is_opening(const struct node *node);
/* It stops, and nobody could take its shards. They still answer what they are asked for, as the
 * embedded store does: their engines refuse changes. */
bool node_is_last(const struct node *node);
/* Puts the URL of a shard's store; ask buf_ok(). */
void node_put_store(const struct node *node, size_t shard, struct buf *out);

/* --- node_api.c: what the api asks --- */

void node_fill_api(struct node *node);

#endif
