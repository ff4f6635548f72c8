/* The claimable jobs of queues, in the order of claims, as the only writer of a store remembers
 * them: a claim need not search for its job, and one that finds nothing need not search at all.
 *
 * A queue is known with all of its jobs or not at all. It becomes known when a claim reads it
 * (store/run/job_queue.c) and is forgotten when it has more than CLAIM_QUEUE_JOBS_MAX jobs: then
 * claims search in the rows. The functions that write jobs keep it true. A rollback and a failed
 * commit empty it, as they empty the cache of rows, and so does whatever changes rows past those
 * functions. */
#ifndef PAWL_STORE_CLAIM_QUEUES_H
#define PAWL_STORE_CLAIM_QUEUES_H

#include "store/db.h"

struct claim_queues;

/* Where a job stands in its queue: of the tenant's, the most urgent one first, then by age. */
struct claim_place {
    int64_t tenant;
    int64_t urgency;
    int64_t age;
    int64_t owner;
    int64_t ordinal;
};

MUST_CHECK struct claim_queues *claim_queues_new(void);
void claim_queues_free(struct claim_queues *c);
void claim_queues_clear(struct claim_queues *c);

/* Of a connection; NULL: it has none, because others write to the store too. All functions below
 * take NULL for a memory that knows nothing. */
struct claim_queues *db_claim_queues(const struct db *db);

/* All jobs of the queue are here. */
bool claim_queues_know(const struct claim_queues *c, struct str queue);
/* The queue is not known and should be read now: it had too many jobs, and many claims have come
 * since, or nobody has asked before. */
bool claim_queues_want(struct claim_queues *c, struct str queue);
/* From here on the queue is known; the caller adds its jobs, before anything else is called. */
void claim_queues_learn(struct claim_queues *c, struct str queue);
void claim_queues_forget(struct claim_queues *c, struct str queue);

/* A job has become claimable, or is it no more. Of a queue that is not known: nothing happens. */
void claim_queues_add(struct claim_queues *c, struct str queue, const struct claim_place *place);
void claim_queues_remove(struct claim_queues *c, struct str queue, const struct claim_place *place);
/* The same in whatever queue it is. Looks through all of them. */
void claim_queues_remove_job(struct claim_queues *c, int64_t owner, int64_t ordinal);

/* Of a queue that is known: the tenant's job behind `passed` others. False: there is none. */
MUST_CHECK bool claim_queues_job(const struct claim_queues *c, struct str queue, int64_t tenant,
                                 size_t passed, struct claim_place *ret);
/* The next tenant after `after` (by number) with a job in it. */
MUST_CHECK bool claim_queues_tenant(const struct claim_queues *c, struct str queue, int64_t after,
                                    int64_t *ret_tenant);

#endif
