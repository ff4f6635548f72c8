/* When to try again, and how long to wait: pure decisions. The rules are those of
 * docs/idempotency.md. */
#ifndef PAWL_RETRY_H
#define PAWL_RETRY_H

#include "pawl.h"

/* Numbers in [0, 1). */
typedef double random_fn(void *at);

/* The pauses of one call, one after the other. */
struct backoff {
    struct pawl_retry rule;
    double bound_ms, last_ms;
};

struct backoff backoff_begin(const struct pawl_retry *rule);

/* The next pause in milliseconds. Draws one number, none without jitter. */
double backoff_next(struct backoff *backoff, random_fn *random, void *at);

void budget_success(struct pawl_budget *budget);

/* Takes a token, if there is one. */
bool budget_allows_retry(struct pawl_budget *budget);

#endif
