/* Which of the timers that are due are fired next, so that one tenant's many do not hold up
 * another's few. */
#ifndef PAWL_CORE_BACKGROUND_TIMER_TURNS_H
#define PAWL_CORE_BACKGROUND_TIMER_TURNS_H

#include "store/run/jobs.h"

/* Where the search through a backlog goes on. In memory only: a restart begins at its front. */
struct timer_search {
    struct timer at; /* all zero: at the front */
};

/* Timers behind the last of `front`, of tenants that have none in it: up to TIMERS_SINGLED_OUT_MAX
 * into `out`, earliest first. Looks at the latest, which have become due since the last turn, and
 * then at a bounded number of the others, behind which it goes on the next time, so that every
 * timer of a backlog is looked at once in a while. */
MUST_CHECK enum err timer_turns_search(struct timer_search *search, struct db *db, int64_t now_ms,
                                       const struct timer *front, size_t front_count,
                                       struct timer *out, size_t *ret_count);

/* Puts the first timer of each tenant first, then the second of each, and so on; those of one
 * tenant keep their order. At most TIMERS_PER_TURN_MAX and TIMERS_SINGLED_OUT_MAX together. */
void timer_turns_mix(const struct timer *const *timers, size_t count, const struct timer **out);

#endif
