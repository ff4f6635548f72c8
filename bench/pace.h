/* When the requests of an open loop are due, and which of them count.
 *
 * An open loop sends at a constant rate, whether or not the server keeps up, as independent clients
 * do. Request n is due n intervals after the start, and its latency is counted from then. A stall
 * of the server therefore shows in every request that was due meanwhile, also in those that could
 * not even be sent; a closed loop would send none and count one slow reply (coordinated omission).
 *
 * Which requests are warm-up and which are measured follows from their numbers alone, so that a
 * slow server cannot push requests out of the window. Pure: the caller brings the time.
 */
#ifndef BENCH_PACE_H
#define BENCH_PACE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct pace {
    uint64_t start_ns;
    double interval_ns;
    uint64_t warm_count;  /* the first requests, which are not measured */
    uint64_t total_count; /* with the measured ones */
    uint64_t taken;       /* so many were given to connections */
};

static inline struct pace pace_begin(uint64_t start_ns, double per_s, double warm_s,
                                     double measured_s)
{
    assert(per_s > 0 && warm_s >= 0 && measured_s > 0);
    struct pace pace = {
        .start_ns = start_ns, .interval_ns = 1e9 / per_s, .warm_count = (uint64_t)(warm_s * per_s)};
    uint64_t measured = (uint64_t)(measured_s * per_s);
    pace.total_count = pace.warm_count + (measured > 0 ? measured : 1);
    return pace;
}

static inline uint64_t pace_due_ns(const struct pace *pace, uint64_t number)
{
    return pace->start_ns + (uint64_t)((double)number * pace->interval_ns);
}

static inline bool pace_is_done(const struct pace *pace)
{
    return pace->taken == pace->total_count;
}

/* Is there a request that should have been sent by now? */
static inline bool pace_is_due(const struct pace *pace, uint64_t now)
{
    return !pace_is_done(pace) && pace_due_ns(pace, pace->taken) <= now;
}

/* Takes the request that is due, and says since when. */
static inline uint64_t pace_take(struct pace *pace, bool *ret_measured)
{
    assert(!pace_is_done(pace));
    *ret_measured = pace->taken >= pace->warm_count;
    return pace_due_ns(pace, pace->taken++);
}

/* How long until the next request is due; 0 if it is. Not after the last one. */
static inline uint64_t pace_wait_ns(const struct pace *pace, uint64_t now)
{
    assert(!pace_is_done(pace));
    uint64_t due = pace_due_ns(pace, pace->taken);
    return due > now ? due - now : 0;
}

#endif
