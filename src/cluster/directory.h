/* The directory of a cluster, as one node sees it: which nodes live, and who owns which shard. A
 * thread of its own renews the node's lease, reads the directory, and takes and releases shards.
 *
 * All functions are called on the HTTP loop's thread and never wait, but for those up to
 * directory_close(). */
#ifndef PAWL_CLUSTER_DIRECTORY_H
#define PAWL_CLUSTER_DIRECTORY_H

#include "store/postgres/cluster_store.h"

struct directory;

/* Makes the directory if the database has none, with `shards` shards. The caller owns *ret. */
MUST_CHECK enum err directory_open(const char *store, size_t shards, const struct env *env,
                                   struct problem *p, struct directory **ret);
/* Waits until no node lives. ERR_STORE_BUSY: one has renewed its lease meanwhile. */
MUST_CHECK enum err directory_await_nobody(struct directory *d, struct problem *p);
/* Enters the node and reads the directory for the first time. A process that has the name is put
 * out. */
MUST_CHECK enum err directory_join(struct directory *d, struct str name, struct str url,
                                   struct problem *p);
/* Leaves the cluster: the lease ends now. */
void directory_close(struct directory *d);

/* Readable when directory_poll() has something new. */
int directory_event_fd(const struct directory *d);
/* Takes over what the thread has read since; false: nothing new. */
bool directory_poll(struct directory *d);
/* What was read last. */
const struct cluster_view *directory_view(const struct directory *d);
/* Another process has taken this node's name: stop. */
bool directory_is_lost(const struct directory *d);

/* Asks for the shard, which had this epoch; the next view tells who has it. */
void directory_take(struct directory *d, size_t shard, int64_t epoch);
void directory_release(struct directory *d, size_t shard);
/* Says that the node is about to end. */
void directory_stop(struct directory *d);
/* Reads the directory again now. */
void directory_refresh(struct directory *d);

#endif
