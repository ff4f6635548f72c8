/* What waits in a tenant's worker queues. Every query here has a bound: none reads all jobs. */
#ifndef PAWL_STORE_RUN_WORKER_QUEUES_H
#define PAWL_STORE_RUN_WORKER_QUEUES_H

#include "base/arena.h"
#include "store/db.h"

/* The next queue by name after `after` with a claimable job of any tenant; *ret_own: whether this
 * tenant has one there. The name is copied to the arena. */
MUST_CHECK enum err queues_next(struct db *db, int64_t tenant, struct str after,
                                struct arena *arena, bool *ret_found, struct str *ret_queue,
                                bool *ret_own);

struct queue_ready {
    int64_t count; /* QUEUE_READY_MAX: that many or more */
    int64_t
        oldest; /* created_at of the oldest among the first QUEUE_OLDEST_MAX; -1: there is none */
};
MUST_CHECK enum err queues_ready(struct db *db, int64_t tenant, struct str queue,
                                 struct queue_ready *ret);

/* Jobs of the tenant that workers have (with the worker) or that wait for their next attempt
 * (worker: ptr NULL), by queue. Looks at QUEUE_TIMERS_MAX timers at most: *ret_all is false when
 * there are more. Text is borrowed. */
typedef void queue_timed_each(void *ctx, struct str queue, struct str worker, int64_t count);
MUST_CHECK enum err queues_timed(struct db *db, int64_t tenant, queue_timed_each *each, void *ctx,
                                 bool *ret_all);

/* The tenant's jobs that wait within a durable function, by queue. Nobody has them. Looks at the
 * newest QUEUE_TIMERS_MAX of all tenants. */
MUST_CHECK enum err queues_suspended(struct db *db, int64_t tenant, queue_timed_each *each,
                                     void *ctx, bool *ret_all);

#endif
