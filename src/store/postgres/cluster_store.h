/* The directory of a cluster in PostgreSQL: nodes with leases, shards with owners and epochs. One
 * connection, used by one thread, which waits for the server. After ERR_STORE_BUSY call again: it
 * connects by itself.
 *
 * Leases are reckoned by the database's clock. They decide when a shard may be taken, never whether
 * a commit is safe: that is the epoch's business (schema/directory/001_shards.directory.sql). While
 * it is connected, a process that has joined holds a lock of its session, so that others see when
 * it has died without waiting for its lease. */
#ifndef PAWL_STORE_POSTGRES_CLUSTER_STORE_H
#define PAWL_STORE_POSTGRES_CLUSTER_STORE_H

#include "base/env.h"
#include "base/limits.h"
#include "base/problem.h"

struct cluster_store;

enum { NODE_SESSION_LEN_MAX = 36, CLUSTER_SECRET_LEN = 64 };

struct cluster_node {
    char name[NODE_NAME_LEN_MAX + 1];
    char url[NODE_URL_LEN_MAX + 1];
    char session[NODE_SESSION_LEN_MAX + 1];
    int64_t lease_ms; /* that is left; 0 or less: over */
    bool draining;    /* gives its shards up and takes none */
    bool stopping;    /* is about to end */
    bool connected;   /* its session at the database is open */
};

struct cluster_shard {
    int owner; /* a node of the view; -1: none that is known */
    int place; /* of the view; -1: the directory's own database */
    int64_t epoch;
    bool held; /* a command has asked for it, and lives: its owner gives it up, nobody takes it */
};

struct cluster_moved {
    char tenant[TENANT_ID_MAX + 1];
    size_t shard;
};

/* What a reading found. */
struct cluster_view {
    uint64_t number; /* of the reading */
    int64_t now_ms;  /* the database's clock */
    int64_t mono_ms; /* ours at that moment */
    uint64_t auth_epoch;
    int self; /* the node that reads; -1: it is none, or not any more */
    size_t node_count;
    size_t shard_count;
    struct cluster_node nodes[CLUSTER_NODES_MAX];
    struct cluster_shard shards[CLUSTER_SHARDS_MAX];
    size_t hashed; /* shards that tenants are spread over; the others are spare */
    size_t moved_count;
    struct cluster_moved moved[CLUSTER_MOVED_MAX]; /* by name */
    size_t place_count;
    char places[CLUSTER_PLACES_MAX][PLACE_URL_LEN_MAX + 1]; /* URLs of other databases */
    char secret[CLUSTER_SECRET_LEN + 1];                    /* hexadecimal */
};

static inline bool cluster_node_lives(const struct cluster_node *n)
{
    return n->lease_ms > 0;
}

/* Connects. The directory need not be there yet. The caller owns *ret. */
MUST_CHECK enum err cluster_store_open(const char *store, const struct env *env, struct problem *p,
                                       struct cluster_store **ret);
void cluster_store_close(struct cluster_store *c);
/* False: the next call connects again first, which takes seconds if the database is away. */
bool cluster_store_is_connected(const struct cluster_store *c);

/* Makes or migrates the directory; a new one gets this many shards. */
MUST_CHECK enum err cluster_store_init(struct cluster_store *c, size_t shards, struct problem *p,
                                       bool *ret_new);
/* ERR_BAD_REQUEST: the database is no cluster. Migrates the directory. */
MUST_CHECK enum err cluster_store_check(struct cluster_store *c, struct problem *p);
/* Sees to it that there are so many spare shards. ERR_STORE_BUSY: nodes live, which know how many
 * shards there were when they started. */
MUST_CHECK enum err cluster_store_add_spares(struct cluster_store *c, size_t spares,
                                             struct problem *p);
/* Puts a shard into another database: before it is opened for the first time, and never shard 0,
 * which has the keys. ERR_NOT_FOUND: there is no such shard. */
MUST_CHECK enum err cluster_store_place(struct cluster_store *c, size_t shard, const char *url,
                                        struct problem *p);
/* Enters the node. A process that had the name before cannot renew its lease any more. */
MUST_CHECK enum err cluster_store_join(struct cluster_store *c, const char *name, const char *url,
                                       struct problem *p);
/* The same for a command that needs two shards for itself: it takes no share, serves nothing, and
 * asks their owners to give them up. ERR_STORE_BUSY: another one has asked for one of them. */
MUST_CHECK enum err cluster_store_join_for(struct cluster_store *c, const char *name, size_t one,
                                           size_t other, struct problem *p);
/* Renews the lease. ERR_STORE_FAILED: another process has the name now. */
MUST_CHECK enum err cluster_store_renew(struct cluster_store *c, struct problem *p);
/* Says that the node is about to end: others may take what it frees. */
MUST_CHECK enum err cluster_store_stop(struct cluster_store *c, struct problem *p);
/* Ends the lease of another process, unless its session is open again. */
MUST_CHECK enum err cluster_store_end_lease(struct cluster_store *c, const char *name,
                                            const char *session, struct problem *p);
/* Ends its own lease. */
MUST_CHECK enum err cluster_store_leave(struct cluster_store *c, struct problem *p);

/* Nothing of *ret is kept from before. */
MUST_CHECK enum err cluster_store_read(struct cluster_store *c, struct problem *p,
                                       struct cluster_view *ret);
/* Takes a shard that is free and had this epoch. *ret_epoch is its new one; 0: somebody else has
 * taken it, or its owner lives. */
MUST_CHECK enum err cluster_store_take(struct cluster_store *c, size_t shard, int64_t epoch,
                                       struct problem *p, int64_t *ret_epoch);
/* Frees a shard that this node owns. */
MUST_CHECK enum err cluster_store_release(struct cluster_store *c, size_t shard, struct problem *p);
/* Keeps nodes from taking the shard as long as this connection is open. ERR_STORE_BUSY: another
 * process has it. For shards in other databases: whoever opens one of this database without being a
 * node has this lock anyway. */
MUST_CHECK enum err cluster_store_hold(struct cluster_store *c, size_t shard, struct problem *p);
/* False: the connection was another one meanwhile. */
MUST_CHECK enum err cluster_store_still_holds(struct cluster_store *c, size_t shard,
                                              struct problem *p, bool *ret);
/* ERR_NOT_FOUND: there is no such node. */
MUST_CHECK enum err cluster_store_set_draining(struct cluster_store *c, const char *name,
                                               bool draining, struct problem *p);

/* Both shards are this node's, with these epochs. All rows of a tenant go from one to the other,
 * and the directory knows it then: in one transaction. */
struct tenant_move {
    const char *tenant;
    size_t from, to;
    int64_t from_epoch, to_epoch;
    bool is_home; /* its name leads to the target */
};
/* ERR_NOT_FOUND: the tenant is not there. ERR_BAD_REQUEST: the target has rows with the same
 * numbers, which only an earlier version has given. */
MUST_CHECK enum err cluster_store_move_tenant(struct cluster_store *c,
                                              const struct tenant_move *move, struct problem *p,
                                              int64_t *ret_rows);

/* --- a copy that is being spread over the shards, all in the directory's database --- */

/* Does the shard have tables, with tenants in them? */
MUST_CHECK enum err cluster_store_has_tenants(struct cluster_store *c, size_t shard,
                                              struct problem *p, bool *ret);
/* The next tenant of the shard, by name, that another shard may get; "" after the last. */
MUST_CHECK enum err cluster_store_next_tenant(struct cluster_store *c, size_t shard,
                                              const char *after, struct problem *p,
                                              char ret[static TENANT_ID_MAX + 1]);
MUST_CHECK enum err cluster_store_has_tenant(struct cluster_store *c, size_t shard,
                                             const char *tenant, struct problem *p, bool *ret);
/* Removes the marks of all shards, which are this node's with these epochs. */
MUST_CHECK enum err cluster_store_end_copy(struct cluster_store *c, const int64_t *epochs,
                                           size_t count, struct problem *p);

/* Waits until another node has changed something, a key was changed, `wake_fd` is readable (which
 * it reads), or `ms` are over. */
void cluster_store_wait(struct cluster_store *c, int wake_fd, int ms);

#endif
