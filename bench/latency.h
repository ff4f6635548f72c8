/* A histogram of durations in nanoseconds, and the clock that feeds it.
 *
 * Log-linear: 128 buckets to each power of two, so a percentile is off by less than 0.4 % at any
 * scale, a sample costs one increment, and a run of any length needs the same 58 KiB.
 */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define LATENCY_SUB_BITS 7
#define LATENCY_SUB ((size_t)1 << LATENCY_SUB_BITS)
#define LATENCY_BUCKETS ((64 - LATENCY_SUB_BITS + 1) * LATENCY_SUB)

struct latency {
    uint64_t count;
    uint64_t max_ns;
    uint64_t buckets[LATENCY_BUCKETS];
};

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void latency_add(struct latency *lat, uint64_t ns)
{
    size_t at = (size_t)ns;
    if (ns >= 2 * LATENCY_SUB) {
        unsigned shift = 63u - (unsigned)__builtin_clzll(ns) - LATENCY_SUB_BITS;
        at = shift * LATENCY_SUB + (size_t)(ns >> shift);
    }
    assert(at < LATENCY_BUCKETS);
    lat->buckets[at]++;
    lat->count++;
    if (ns > lat->max_ns)
        lat->max_ns = ns;
}

/* The middle of the bucket that holds the given share of the samples; 0 without samples. */
static inline double latency_percentile_us(const struct latency *lat, double percent)
{
    assert(percent > 0 && percent <= 100);
    double wanted = (double)lat->count * percent / 100;
    uint64_t seen = 0;
    for (size_t at = 0; at < LATENCY_BUCKETS; at++) {
        seen += lat->buckets[at];
        if (lat->buckets[at] == 0 || (double)seen < wanted)
            continue;
        if (at < 2 * LATENCY_SUB)
            return (double)at / 1000;
        size_t shift = at / LATENCY_SUB - 1;
        uint64_t low = (uint64_t)(at % LATENCY_SUB + LATENCY_SUB) << shift;
        double middle = (double)low + (double)((uint64_t)1 << shift) / 2;
        return (middle < (double)lat->max_ns ? middle : (double)lat->max_ns) / 1000;
    }
    return 0;
}

#endif
