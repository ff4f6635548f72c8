#include "retry.h"

#include <math.h>

struct backoff backoff_begin(const struct pawl_retry *rule)
{
    return (struct backoff){.rule = *rule, .bound_ms = rule->base_ms, .last_ms = rule->base_ms};
}

double backoff_next(struct backoff *backoff, random_fn *random, void *at)
{
    const struct pawl_retry *rule = &backoff->rule;
    if (rule->jitter == PAWL_JITTER_DECORRELATED) {
        double share = random(at);
        backoff->last_ms =
            fmin(rule->max_ms, rule->base_ms + share * (3 * backoff->last_ms - rule->base_ms));
        return backoff->last_ms;
    }
    double bound = fmin(rule->max_ms, backoff->bound_ms);
    backoff->bound_ms = fmin(rule->max_ms, backoff->bound_ms * rule->multiplier);
    if (rule->jitter == PAWL_JITTER_NONE)
        return bound;
    double share = random(at);
    return rule->jitter == PAWL_JITTER_FULL ? bound * share : bound * (1 + share) / 2;
}

void budget_success(struct pawl_budget *budget)
{
    budget->tokens = fmin(budget->max, budget->tokens + budget->per_success);
}

bool budget_allows_retry(struct pawl_budget *budget)
{
    if (budget->tokens < 1)
        return false;
    budget->tokens -= 1;
    return true;
}
