/* How many invalid keys an address may send, and that the table of addresses stays bounded. */
#include "base/support.h"

#include "runtime/login_throttle.h"

enum { NOW_MS = 1800000000 };

static struct login_throttle *fresh(void)
{
    struct login_throttle *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    return t;
}

static void fail_times(struct login_throttle *t, const char *peer, int times)
{
    for (int i = 0; i < times; i++)
        login_throttle_failed(t, str_of(peer), NOW_MS);
}

static int64_t wait_of(const struct login_throttle *t, const char *peer, int64_t now_ms)
{
    return login_throttle_wait_ms(t, str_of(peer), now_ms);
}

static void an_address_waits_after_a_burst_and_only_that_one(void **state)
{
    (void)state;
    struct login_throttle *t = fresh();
    fail_times(t, "192.0.2.1", LOGIN_FAILURES_BURST - 1);
    assert_int_equal(wait_of(t, "192.0.2.1", NOW_MS), 0);
    fail_times(t, "192.0.2.1", 1);
    int64_t wait = wait_of(t, "192.0.2.1", NOW_MS);
    assert_in_range(wait, 1, 1000 / LOGIN_FAILURES_PER_S);
    assert_int_equal(wait_of(t, "192.0.2.1", NOW_MS + wait), 0);
    assert_int_equal(wait_of(t, "192.0.2.2", NOW_MS), 0);
    free(t);
}

static void looking_costs_no_token(void **state)
{
    (void)state;
    struct login_throttle *t = fresh();
    for (int i = 0; i < 2 * LOGIN_FAILURES_BURST; i++)
        assert_int_equal(wait_of(t, "192.0.2.1", NOW_MS), 0);
    free(t);
}

static void a_network_of_ipv6_is_one_client(void **state)
{
    (void)state;
    struct login_throttle *t = fresh();
    fail_times(t, "2001:db8:0:1::1", LOGIN_FAILURES_BURST);
    assert_true(wait_of(t, "2001:db8:0:1:ffff::9", NOW_MS) > 0);
    assert_int_equal(wait_of(t, "2001:db8:0:2::1", NOW_MS), 0);
    free(t);
}

static void an_address_is_the_same_when_it_is_mapped(void **state)
{
    (void)state;
    struct login_throttle *t = fresh();
    fail_times(t, "192.0.2.1", LOGIN_FAILURES_BURST);
    assert_true(wait_of(t, "::ffff:192.0.2.1", NOW_MS) > 0);
    assert_int_equal(wait_of(t, "::ffff:192.0.2.2", NOW_MS), 0);
    free(t);
}

static void any_number_of_addresses_fits(void **state)
{
    (void)state;
    struct login_throttle *t = fresh();
    for (unsigned i = 0; i < 4 * LOGIN_PEERS_MAX; i++) {
        char peer[32];
        (void)snprintf(peer, sizeof(peer), "10.%u.%u.1", i / 256, i % 256);
        login_throttle_failed(t, str_of(peer), NOW_MS);
    }
    fail_times(t, "192.0.2.1", LOGIN_FAILURES_BURST);
    assert_true(wait_of(t, "192.0.2.1", NOW_MS) > 0);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_waits_after_a_burst_and_only_that_one),
        cmocka_unit_test(looking_costs_no_token),
        cmocka_unit_test(a_network_of_ipv6_is_one_client),
        cmocka_unit_test(an_address_is_the_same_when_it_is_mapped),
        cmocka_unit_test(any_number_of_addresses_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
