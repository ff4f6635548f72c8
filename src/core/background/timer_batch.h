/* Fires due timers: together in one transaction, or one by one after one of them failed.
 *
 * Tenants take turns. A batch takes the earliest timers. If more are due than fit, it also searches
 * the rest for timers of other tenants. The timers of one tenant fire in the order of their times.
 */
#ifndef PAWL_CORE_BACKGROUND_TIMER_BATCH_H
#define PAWL_CORE_BACKGROUND_TIMER_BATCH_H

#include "base/limits.h"
#include "core/background/put_aside.h"
#include "core/background/timer_turns.h"
#include "core/background/work.h"
#include "store/run/timers.h"

struct timer_batch {
    int64_t next; /* when the earliest timer is due; -1: none */
    size_t alone; /* how many due timers to fire one by one, because one of them failed */
    struct timer due[TIMERS_PER_TURN_MAX];
    size_t count;
    struct timer others[TIMERS_SINGLED_OUT_MAX]; /* of tenants that have none in `due` */
    size_t others_count;
    struct timer_search search; /* finds `others` */
    bool tried;                 /* the last transaction began to fire a timer */
    int64_t found_next;         /* `next`, as the last transaction read it */
};

/* Runs one slice. If a timer cannot fire even alone, its run fails when the run is too large
 * (ERR_TOO_LARGE); otherwise the timer is put aside. Adds the number of such timers to *ret_failed.
 */
MUST_CHECK enum err timer_batch_turn(struct timer_batch *b, struct work_env *w, struct tx *tx,
                                     struct put_aside *aside, struct problem *p,
                                     int64_t *ret_failed);

#endif
