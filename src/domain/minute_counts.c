/* What happened to a tenant's runs in one minute. */
#include "domain/minute_counts.h"

enum minute_figure minute_figure_of_end(enum run_status status)
{
    static_assert(RUN_TIMED_OUT - RUN_SUCCEEDED == MINUTE_TIMED_OUT - MINUTE_SUCCEEDED,
                  "the ends of runs are in the same order");
    assert(run_has_ended(status));
    return (enum minute_figure)(MINUTE_SUCCEEDED + (status - RUN_SUCCEEDED));
}

void minute_counts_add_wait(struct minute_counts *c, int64_t ms)
{
    size_t bucket = 0;
    while (bucket < WAIT_BUCKETS - 1 && ms > INT64_C(1) << bucket)
        bucket++;
    c->waits[bucket]++;
}

void minute_counts_add(struct minute_counts *c, const struct minute_counts *more)
{
    for (size_t i = 0; i < MINUTE_FIGURE_COUNT; i++)
        c->figures[i] += more->figures[i];
    for (size_t i = 0; i < WAIT_BUCKETS; i++)
        c->waits[i] += more->waits[i];
}

int64_t minute_counts_waits(const struct minute_counts *c)
{
    int64_t sum = 0;
    for (size_t i = 0; i < WAIT_BUCKETS; i++)
        sum += c->waits[i];
    return sum;
}

int64_t minute_counts_percentile(const struct minute_counts *c, int64_t percent)
{
    assert(percent > 0 && percent <= 100);
    int64_t all = minute_counts_waits(c);
    int64_t so_far = 0;
    for (size_t i = 0; i < WAIT_BUCKETS && all > 0; i++) {
        so_far += c->waits[i];
        if (so_far * 100 >= all * percent)
            return INT64_C(1) << i;
    }
    return -1;
}
