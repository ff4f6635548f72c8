/* GCRA in nanoseconds: what a bucket lacks is measured as the time in which it comes. */
#include "domain/admission/rate.h"

static const int64_t NS_PER_S = INT64_C(1000) * 1000 * 1000;
static const int64_t NS_PER_MS = INT64_C(1000) * 1000;

static int64_t cost_ns(const struct rate_limit *r);
static int64_t missing_ns(const struct rate_limit *r, int64_t now_ms, int64_t full_at_ns);
static uint64_t ns_of_ms(int64_t ms);

bool rate_take(const struct rate_limit *r, int64_t now_ms, int64_t *full_at_ns,
               int64_t *ret_wait_ms)
{
    if (r->per_second == 0)
        return true;
    int64_t depth_ns = r->burst * cost_ns(r);
    int64_t missing_after_ns = missing_ns(r, now_ms, *full_at_ns) + cost_ns(r);
    if (missing_after_ns > depth_ns) {
        *ret_wait_ms = (missing_after_ns - depth_ns + NS_PER_MS - 1) / NS_PER_MS;
        assert(*ret_wait_ms >= 1 && *ret_wait_ms <= depth_ns / NS_PER_MS + 1);
        return false;
    }
    *full_at_ns = (int64_t)(ns_of_ms(now_ms) + (uint64_t)missing_after_ns);
    return true;
}

int64_t rate_available(const struct rate_limit *r, int64_t now_ms, int64_t full_at_ns)
{
    if (r->per_second == 0)
        return INT64_MAX;
    int64_t cost = cost_ns(r);
    int64_t filled_ns = r->burst * cost - missing_ns(r, now_ms, full_at_ns);
    assert(filled_ns <= r->burst * cost);
    return MAX(filled_ns, 0) / cost;
}

/* The time in which one token comes, rounded up: the rate is never exceeded, and at most a
 * thousandth below what was asked for. */
static int64_t cost_ns(const struct rate_limit *r)
{
    assert(r->per_second >= 1 && r->per_second <= RATE_MAX);
    return (NS_PER_S + r->per_second - 1) / r->per_second;
}

/* The time until the bucket is full: 0 … its depth, and more after the clock went back a little.
 * 64 bits of nanoseconds end in 2262, so times are unsigned and wrap, as sequence numbers do: the
 * distance of two times that lie within 292 years of each other is right all the same. */
static int64_t missing_ns(const struct rate_limit *r, int64_t now_ms, int64_t full_at_ns)
{
    assert(r->burst >= 1 && r->burst <= RATE_MAX && now_ms >= 0);
    if (full_at_ns == 0)
        return 0;
    int64_t depth_ns = r->burst * cost_ns(r);
    int64_t ahead_ns = (int64_t)((uint64_t)full_at_ns - ns_of_ms(now_ms));
    /* Then the next token would be farther than a whole bucket. A refusal leaves the state alone,
     * so the answer must be a token: else all are refused until the clock has caught up. */
    if (ahead_ns > 2 * depth_ns - cost_ns(r))
        return depth_ns - cost_ns(r);
    return MAX(ahead_ns, 0);
}

static uint64_t ns_of_ms(int64_t ms)
{
    return (uint64_t)ms * (uint64_t)NS_PER_MS;
}
