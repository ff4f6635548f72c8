/* Fires due timers: together in one transaction, or one by one after one of them failed.
 *
 * * Tenants take turns. A turn takes the earliest timers; if there are more of them than it can
 * take, it also searches for timers of other tenants behind them. Those of one tenant are fired
 * in the order of their times. */
#ifndef PAWL_CORE_BACKGROUND_TIMER_BATCH_H
#define PAWL_CORE_BACKGROUND_TIMER_BATCH_H

#include "base/limits.h"
#include "core/background/put_aside.h"
#include "core/background/timer_turns.h"
#include "core/background/work.h"
#include "store/run/jobs.h"

struct timer_batch {
    int64_t next; /* the earliest; -1: none */
    size_t alone; /* so many of those that are due are fired one by one: one of them failed */
    struct timer due[TIMERS_PER_TURN_MAX];
    size_t count;
    struct timer others[TIMERS_SINGLED_OUT_MAX]; /* of tenants that have none in `due` */
    size_t others_count;
    struct timer_search search; /* for those */
    bool tried;                 /* the transaction under way has come as far as firing one */
    int64_t found_next;         /* by it */
};

/* One slice. A timer that cannot be fired alone fails its run if that is the reason
 * (ERR_TOO_LARGE), or is put aside; *ret_failed counts those. */
MUST_CHECK enum err timer_batch_turn(struct timer_batch *b, struct work_env *w, struct tx *tx,
                                     struct put_aside *aside, struct problem *p,
                                     int64_t *ret_failed);

#endif
