/* Chance from a seed, for the simulator itself: small, fast, the same everywhere. */
#ifndef PAWL_TESTS_SIM_LOT_H
#define PAWL_TESTS_SIM_LOT_H

#include <stdbool.h>
#include <stdint.h>

struct lot {
    uint64_t state;
};

static inline uint64_t lot_bits(struct lot *lot)
{
    uint64_t z = lot->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* A chance of its own for part `part` of what `seed` decides. */
static inline struct lot lot_of(uint64_t seed, uint64_t part)
{
    struct lot lot = {seed * UINT64_C(0xD1342543DE82EF95) + part};
    (void)lot_bits(&lot);
    lot.state ^= part << 32;
    return lot;
}

/* 0 … below - 1. */
static inline int lot_below(struct lot *lot, int below)
{
    return (int)(lot_bits(lot) % (uint64_t)below);
}

/* True in `in` of 100 cases. */
static inline bool lot_percent(struct lot *lot, int in)
{
    return lot_below(lot, 100) < in;
}

/* least … most, both included. */
static inline int64_t lot_between(struct lot *lot, int64_t least, int64_t most)
{
    return least + (int64_t)(lot_bits(lot) % (uint64_t)(most - least + 1));
}

#endif
