/* Are two tenants the same in every setting and counter? */
#ifndef PAWL_TESTS_DOMAIN_SAME_TENANT_H
#define PAWL_TESTS_DOMAIN_SAME_TENANT_H

#include "domain/tenant.h"

static inline void assert_gate(const struct gate_policy *a, const struct gate_policy *b)
{
    assert_int_equal(a->max_wait_ms, b->max_wait_ms);
    assert_int_equal(a->lock_ttl_ms, b->lock_ttl_ms);
    assert_int_equal(a->retry_delay_ms, b->retry_delay_ms);
    assert_int_equal(a->policy, b->policy);
    assert_int_equal(a->kind, b->kind);
}

static inline void assert_rate(const struct rate_limit *r, int64_t per_second, int64_t burst)
{
    assert_int_equal(r->per_second, per_second);
    assert_int_equal(r->burst, burst);
}

static inline void assert_same_tenant(const struct tenant *a, const struct tenant *b)
{
    assert_int_equal(a->num, b->num);
    assert_true(str_eq(a->id, b->id) && str_eq(a->name, b->name));
    assert_int_equal(a->name.ptr == NULL, b->name.ptr == NULL);
    assert_int_equal(a->max_concurrent_runs, b->max_concurrent_runs);
    assert_int_equal(a->max_queued_runs, b->max_queued_runs);
    assert_int_equal(a->at_limit, b->at_limit);
    assert_int_equal(a->idempotency_retention_ms, b->idempotency_retention_ms);
    assert_int_equal(a->weight, b->weight);
    assert_gate(&a->gate, &b->gate);
    assert_rate(&a->rate_limit, b->rate_limit.per_second, b->rate_limit.burst);
    assert_int_equal(a->settings_version, b->settings_version);
    assert_int_equal(a->rate_full_at_ns, b->rate_full_at_ns);
    assert_int_equal(a->active_runs, b->active_runs);
    assert_int_equal(a->queued_runs, b->queued_runs);
    assert_int_equal(a->created_at, b->created_at);
    assert_int_equal(a->updated_at, b->updated_at);
}

#endif
