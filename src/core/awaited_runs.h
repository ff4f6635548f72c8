/* The runs whose ends callers wait for, as a table of counters by the random part of the id: a run
 * that somebody waits for is always in it, another one rarely. One thread counts, any may ask. */
#ifndef PAWL_CORE_AWAITED_RUNS_H
#define PAWL_CORE_AWAITED_RUNS_H

#include "base/env.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { AWAITED_RUNS_PLACES = 4096 };

/* All zero is empty. */
struct awaited_runs {
    atomic_uint counts[AWAITED_RUNS_PLACES];
};

static inline size_t awaited_runs_place(struct uuid id)
{
    return ((size_t)id.bytes[14] << 8 | id.bytes[15]) % AWAITED_RUNS_PLACES;
}

static inline void awaited_runs_add(struct awaited_runs *a, struct uuid id)
{
    atomic_fetch_add(&a->counts[awaited_runs_place(id)], 1);
}

static inline void awaited_runs_remove(struct awaited_runs *a, struct uuid id)
{
    atomic_fetch_sub(&a->counts[awaited_runs_place(id)], 1);
}

static inline bool awaited_runs_may_have(const struct awaited_runs *a, struct uuid id)
{
    return atomic_load(&a->counts[awaited_runs_place(id)]) > 0;
}

#endif
