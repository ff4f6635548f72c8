/* Timers of jobs, written by fold.
 *
 * A job's row says what it waits for; the timer only finds it by time. So a timer that was armed a
 * moment ago needs no row: it waits in memory (cache/recent_timers.h) for the next fold, which
 * writes what is still armed, many rows at once. What came and went between two folds is never
 * written.
 *
 *     arm      in memory; as a row when there is no room, or when no event of the same transaction
 *              tells that its owner has changed
 *     disarm   from memory, or else the row
 *     fold     when a timer in memory is due, when many wait, and every second: rows for all, and
 *              the mark in the same transaction
 *     lost     after a rollback, a crash or a start: the next fold writes what the jobs of the
 *              owners say that are ahead of the mark; until then timers are armed as rows */
#ifndef PAWL_CORE_TXN_JOB_TIMERS_H
#define PAWL_CORE_TXN_JOB_TIMERS_H

#include "core/txn/tx.h"

MUST_CHECK enum err job_timer_arm(struct tx *tx, const struct timer *timer);
MUST_CHECK enum err job_timer_disarm(struct tx *tx, const struct timer *timer);

/* Writes all. Inside a transaction. */
MUST_CHECK enum err job_timers_fold(struct tx *tx);
/* The same if one is due, or if it may be: then every timer that is due has a row. */
MUST_CHECK enum err job_timers_fold_due(struct tx *tx);
/* Is it time for a fold, without waiting for the second? */
bool job_timers_want_fold(const struct tx *tx);
/* When the earliest of all timers is due; -1: there is none. */
MUST_CHECK enum err job_timers_next(struct tx *tx, int64_t *ret_due_at);

#endif
