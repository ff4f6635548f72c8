/* Timers as rows: a job's due_at, found by time, and times of runs and entities themselves.
 *
 * Timers of jobs are written by fold: one that was armed a moment ago may be in the writer's memory
 * only (core/txn/job_timers.h). Which ones those are can be told from the rows: an owner that has
 * changed since the last fold, with an event of the change in the feed above the fold's mark, is
 * ahead of the fold, and its jobs say what they wait for. */
#ifndef PAWL_STORE_RUN_TIMERS_H
#define PAWL_STORE_RUN_TIMERS_H

#include "store/db.h"

/* A job `j` in one of the states that wait for due_at, if there is one. */
#define JOB_MAY_WAIT                                                          \
    "(j.state = 'running' OR j.state = 'scheduled' OR j.state = 'dispatched'" \
    " OR j.state = 'approval' OR j.state = 'suspended')"

/* The first job of a run `r` is part of the run's row (docs/adr/053). */
#define FIRST_IS_IN_RUN                                              \
    "r.first_queue IS NOT NULL AND NOT EXISTS (SELECT 1 FROM jobs j" \
    " WHERE j.run = r.num AND j.ordinal = 1)"

/* The owners that are ahead of the fold, as a list of their numbers. */
#define OWNERS_AHEAD "(SELECT run FROM owners_ahead)"

struct timer {
    int64_t due_at;
    int64_t owner; /* the job's, with its ordinal */
    int64_t ordinal;
    int64_t generation; /* the job's lease_epoch when it was armed: another one means stale */
    int64_t tenant;     /* whose it is; not needed to delete it */
};

/* By time, then by owner and ordinal: the order in which they fire. */
int timer_order(const struct timer *a, const struct timer *b);

MUST_CHECK enum err timers_insert(struct db *db, const struct timer *timer);
/* Many at once, in their order. */
MUST_CHECK enum err timers_insert_all(struct db *db, const struct timer *timers, size_t count);
/* Writes a row for each job that waits for a time, of the owners that are ahead of the fold. */
MUST_CHECK enum err timers_insert_missing(struct db *db);
/* Sets the mark: all timers of owners with rows of the feed up to this number are here. */
MUST_CHECK enum err timers_folded(struct db *db, int64_t through);
MUST_CHECK enum err timers_folded_through(struct db *db, int64_t *ret);
MUST_CHECK enum err timers_delete(struct db *db, const struct timer *timer);
/* Up to `limit` with due_at ≤ now, earliest first, into `out`. */
MUST_CHECK enum err timers_due(struct db *db, int64_t now_ms, size_t limit, struct timer *out,
                               size_t *ret_count);
/* Up to `limit` of those after `after`, in the same order, until `each` returns false. */
typedef bool timer_each(void *ctx, const struct timer *timer);
MUST_CHECK enum err timers_due_after(struct db *db, int64_t now_ms, const struct timer *after,
                                     int64_t limit, timer_each *each, void *ctx);
/* Those that are due, latest first. */
MUST_CHECK enum err timers_due_latest(struct db *db, int64_t now_ms, int64_t limit,
                                      timer_each *each, void *ctx);
/* -1 when there is none. */
MUST_CHECK enum err timers_next(struct db *db, int64_t *ret_due_at);

#endif
