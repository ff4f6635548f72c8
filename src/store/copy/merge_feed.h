/* The feeds of several shards become one: the rows of each come behind those of the shard before
 * it, as they do when a tenant is moved (docs/adr/049). */
#ifndef PAWL_STORE_COPY_MERGE_FEED_H
#define PAWL_STORE_COPY_MERGE_FEED_H

#include "store/copy/merge_tenants.h"

/* Of one shard. */
struct merge_feed {
    int64_t shift; /* is added to the numbers of its rows; 0 for shard 0 */
    int64_t last;  /* the last number that it has given */
    int64_t swept; /* up to this one rows were removed */
    bool has_bus, has_webhooks, has_webhooks_seq; /* readers; without them their marks are 0 */
    int64_t bus, webhooks, webhooks_seq;
    int64_t timers;   /* the timers of jobs are written up to this one */
    int64_t counters; /* the counters of tenants are folded up to this one */
};

/* `ret` has room for one of each shard. */
MUST_CHECK enum err merge_feeds_read(struct db *const *shards, size_t count,
                                     struct merge_feed *ret);
/* How far the feed's readers have come, and what the clients of each tenant count from. */
MUST_CHECK enum err merge_feeds_finish(struct db *const *shards, size_t count,
                                       const struct merge_feed *feeds,
                                       const struct merge_tenants *tenants, struct db *target);

#endif
