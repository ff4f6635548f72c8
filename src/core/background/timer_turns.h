/* Chooses which due timers fire next, so that one tenant's backlog does not delay the timers of
 * others. */
#ifndef PAWL_CORE_BACKGROUND_TIMER_TURNS_H
#define PAWL_CORE_BACKGROUND_TIMER_TURNS_H

#include "store/run/timers.h"

/* Where the search through a backlog continues. Kept in memory only: after a restart it begins
 * at the front. */
struct timer_search {
    struct timer at; /* all zero: at the front */
};

/* Finds timers after the last of `front` that belong to tenants without a timer in it: up to
 * TIMERS_SINGLED_OUT_MAX into `out`, earliest first. It examines the latest timers, which have
 * become due since the last turn, and then a bounded number of the others; the next search
 * continues after those, so it reaches every timer of a backlog. */
MUST_CHECK enum err timer_turns_search(struct timer_search *search, struct db *db, int64_t now_ms,
                                       const struct timer *front, size_t front_count,
                                       struct timer *out, size_t *ret_count);

/* Puts the first timer of each tenant first, then the second of each, and so on; those of one
 * tenant keep their order. At most TIMERS_PER_TURN_MAX and TIMERS_SINGLED_OUT_MAX together. */
void timer_turns_mix(const struct timer *const *timers, size_t count, const struct timer **out);

#endif
