/* Whether a failed attempt of a job is made again, and when. Pure. */
#ifndef PAWL_DOMAIN_RETRY_RETRY_H
#define PAWL_DOMAIN_RETRY_RETRY_H

#include "domain/workflow/definition.h"

/* A lease that ends is no failure of the work itself, so where nothing is said it is handed out
 * again, but not forever: a job that kills its workers must come to an end. */
enum { LEASES_MAX_DEFAULT = 20 };

/* After attempt number `attempt` (1 is the first) has failed with this error code. */
bool retry_after_failure(const struct retry_policy *policy, int64_t attempt, struct str code,
                         bool retryable);
/* After its lease has ended without a word. */
bool retry_after_expiry(const struct retry_policy *policy, int64_t attempt);
/* How long to wait before the attempt that follows `attempt`; `seed` is 64 random bits. Delays are
 * not kept: a decorrelated one takes the longest that the one before it can have been. */
int64_t retry_delay_ms(const struct retry_policy *policy, int64_t attempt, uint64_t seed);

#endif
