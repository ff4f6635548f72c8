/* How long to wait before trying again: four policies, from always the same delay to a random one
 * below a doubling ceiling. Pure: the caller brings the random bits. */
#ifndef PAWL_DOMAIN_RETRY_BACKOFF_H
#define PAWL_DOMAIN_RETRY_BACKOFF_H

#include "base/str.h"

/* `ceiling` is min(max_ms, base_ms · 2^(attempt - 1)); every delay is capped at max_ms.
 * A table is read by its columns. */
/* clang-format off */
#define BACKOFF_POLICIES(X)                                                                        \
    /* symbol               name               uniform in */                                       \
    X(BACKOFF_FIXED,        "fixed")        /* base_ms alone */                                    \
    X(BACKOFF_FULL_JITTER,  "full_jitter")  /* 0 … ceiling */                                      \
    X(BACKOFF_EQUAL_JITTER, "equal_jitter") /* ceiling / 2 … ceiling */                            \
    X(BACKOFF_DECORRELATED, "decorrelated") /* base_ms … max(base_ms, 3 · previous_ms) */
/* clang-format on */

enum backoff_policy {
#define X(symbol, name) symbol,
    BACKOFF_POLICIES(X)
#undef X
        BACKOFF_POLICY_COUNT
};

const char *backoff_policy_name(enum backoff_policy policy);
/* BACKOFF_POLICY_COUNT when there is no such policy. */
enum backoff_policy backoff_policy_of(struct str name);

struct backoff {
    enum backoff_policy policy;
    int64_t base_ms; /* 0: every delay is 0 */
    int64_t max_ms;  /* may be less than base_ms, and then wins */
};

/* The delay before a retry, 0 … max_ms. `attempt` is 1 at the first retry. `previous_ms` is what
 * the last call gave, 0 at first; a decorrelated delay grows from it, and is base_ms at first.
 * `seed` is 64 random bits: the same arguments give the same delay, and one seed may serve all
 * attempts, for each draws its own number from it. Negative numbers break the contract. */
int64_t backoff_delay_ms(const struct backoff *b, int64_t attempt, int64_t previous_ms,
                         uint64_t seed);

#endif
