/* A token bucket whose whole state is one number: the time at which it is full again (GCRA). It
 * holds at most `burst` tokens and gains `per_second` of them a second. Pure.
 *
 * Nobody is locked out by a clock that went back: no wait is longer than an empty bucket takes to
 * fill, burst / per_second. A state that asks for more was written under another clock, or before
 * the settings changed, and counts as one token; once that is taken the state is right again. */
#ifndef PAWL_DOMAIN_ADMISSION_RATE_H
#define PAWL_DOMAIN_ADMISSION_RATE_H

#include "base/macros.h"

#include <stdbool.h>

enum { RATE_MAX = 1000 * 1000 }; /* of both settings: a token then costs a whole microsecond */

struct rate_limit {
    int64_t per_second; /* 0: no limit */
    int64_t burst;      /* at least 1, when there is a limit */
};

/* Takes one token at now_ms, which is not negative. True: admitted, and *full_at_ns moved. False:
 * *full_at_ns is untouched, and *ret_wait_ms, written only then, is how long until a token is
 * there, at least 1. *full_at_ns is 0 at first, a full bucket, and kept with the tenant. It counts
 * nanoseconds since 1970 in 64 bits, which end in 2262, and then wraps: only its distance from now
 * is looked at. */
MUST_CHECK bool rate_take(const struct rate_limit *r, int64_t now_ms, int64_t *full_at_ns,
                          int64_t *ret_wait_ms);

/* Whole tokens in the bucket now, 0 … burst: how many rate_take() would give at this instant.
 * INT64_MAX when there is no limit. */
int64_t rate_available(const struct rate_limit *r, int64_t now_ms, int64_t full_at_ns);

#endif
