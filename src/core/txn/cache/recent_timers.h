/* Timers of jobs that have no row yet. Most leases and short sleeps end within a second: their
 * timers come and go here and are never written. A fold writes those that are left, in bulk
 * (core/txn/job_timers.h).
 *
 * Only memory of the writer. After a rollback, and when the server has just started, it does not
 * know which timers lack a row: it has lost count until they were found again from the jobs. */
#ifndef PAWL_CORE_TXN_CACHE_RECENT_TIMERS_H
#define PAWL_CORE_TXN_CACHE_RECENT_TIMERS_H

#include "base/hash_map.h"
#include "base/limits.h"
#include "core/txn/effects.h"
#include "store/run/timers.h"

struct recent_timer {
    struct hash_entry entry; /* by owner and ordinal */
    struct timer timer;
    bool is_new; /* armed by the transaction under way */
    struct recent_timer *next_free;
};

struct recent_timers {
    bool is_lost;
    struct hash_map map;       /* the newest are those of the transaction under way */
    struct recent_timer *pool; /* RECENT_TIMERS_MAX */
    struct recent_timer *free; /* used before, and free again */
    size_t used;               /* of the pool */
};

MUST_CHECK struct recent_timers *recent_timers_new(void);
void recent_timers_free(struct recent_timers *r);
/* Empties it: it is lost. */
void recent_timers_forget(struct recent_timers *r);
/* Empties it: every timer has a row. */
void recent_timers_folded(struct recent_timers *r);

/* False when it is full or lost: the timer needs a row. */
bool recent_timers_add(struct recent_timers *r, const struct timer *timer);
/* False when it is not there: it may have a row. */
bool recent_timers_remove(struct recent_timers *r, const struct timer *timer);
size_t recent_timers_count(const struct recent_timers *r);
/* -1: there is none. */
int64_t recent_timers_earliest(const struct recent_timers *r);
/* All of them, in the order of their times; room for recent_timers_count(). */
void recent_timers_sorted(const struct recent_timers *r, struct timer *out);

/* Before the commit: writes those of the transaction under way whose owner has no event in it. They
 * could not be found again. */
MUST_CHECK enum err recent_timers_flush(struct recent_timers *r, struct db *db,
                                        const struct effects *fx, struct arena *arena);

#endif
