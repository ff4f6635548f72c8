/* Retry policies of steps. */
#include "domain/retry/retry.h"

#include "domain/retry/backoff.h"

static bool is_listed(const struct json *codes, struct str code)
{
    for (size_t i = 0; i < json_length(codes); i++) {
        if (str_eq(json_text_of(json_element(codes, i)), code))
            return true;
    }
    return false;
}

bool retry_after_failure(const struct retry_policy *policy, int64_t attempt, struct str code,
                         bool retryable)
{
    return retryable && attempt < MAX(policy->max_attempts, (int64_t)1) &&
           !is_listed(policy->non_retryable, code);
}

bool retry_after_expiry(const struct retry_policy *policy, int64_t attempt)
{
    return attempt < (policy->max_attempts > 0 ? policy->max_attempts : LEASES_MAX_DEFAULT);
}

/* backoff_ms · factor^(attempt - 1), at most max_backoff_ms. */
static int64_t ceiling_ms(const struct retry_policy *policy, double factor, int64_t attempt)
{
    double ceiling = (double)policy->backoff_ms;
    double max = (double)policy->max_backoff_ms;
    for (int64_t i = 1; i < attempt && ceiling < max && ceiling > 0 && factor > 1; i++)
        ceiling *= factor;
    return ceiling < max ? (int64_t)ceiling : policy->max_backoff_ms;
}

int64_t retry_delay_ms(const struct retry_policy *policy, int64_t attempt, uint64_t seed)
{
    static const enum backoff_policy BY_JITTER[] = {
        [JITTER_NONE] = BACKOFF_FIXED,
        [JITTER_FULL] = BACKOFF_FULL_JITTER,
        [JITTER_EQUAL] = BACKOFF_EQUAL_JITTER,
        [JITTER_DECORRELATED] = BACKOFF_DECORRELATED,
    };
    assert(attempt >= 1);
    bool grows = policy->jitter != JITTER_DECORRELATED;
    /* The ceiling is this policy's own, with its multiplier; backoff takes it as a first attempt.
     */
    struct backoff backoff = {BY_JITTER[policy->jitter],
                              grows ? ceiling_ms(policy, policy->multiplier, attempt)
                                    : policy->backoff_ms,
                              policy->max_backoff_ms};
    int64_t previous = grows ? 0 : ceiling_ms(policy, 3, attempt);
    return backoff_delay_ms(&backoff, 1, previous, seed);
}
