/* The open loop's accounting, also against a simulated server that stalls. */
#include "testing.h"

#include "bench/latency.h"
#include "bench/pace.h"

#define MS 1000000u
#define SECOND 1000000000u
#define START (5 * (uint64_t)SECOND)

static void requests_are_due_at_a_constant_rate(void **state)
{
    (void)state;
    struct pace pace = pace_begin(START, 3, 0, 10);
    assert_int_equal(pace_due_ns(&pace, 0), START);
    assert_int_equal(pace_due_ns(&pace, 3), START + SECOND);
    assert_int_equal(pace_due_ns(&pace, 30), START + 10 * (uint64_t)SECOND);
    assert_int_equal(pace.total_count, 30);
}

static void a_rate_does_not_drift_in_an_hour(void **state)
{
    (void)state;
    struct pace pace = pace_begin(START, 30000, 0, 3600);
    uint64_t last = pace_due_ns(&pace, (uint64_t)30000 * 3600) - START;
    assert_in_range(last, 3600 * (uint64_t)SECOND - 1000, 3600 * (uint64_t)SECOND + 1000);
}

static void a_request_is_due_at_its_time_and_not_before(void **state)
{
    (void)state;
    struct pace pace = pace_begin(START, 1000, 0, 1);
    bool measured;
    assert_int_equal(pace_take(&pace, &measured), START);
    assert_false(pace_is_due(&pace, START + MS - 1));
    assert_int_equal(pace_wait_ns(&pace, START + MS - 1), 1);
    assert_true(pace_is_due(&pace, START + MS));
    assert_int_equal(pace_wait_ns(&pace, START + 2 * MS), 0);
}

static void the_first_requests_are_warm_up_however_late_they_are_sent(void **state)
{
    (void)state;
    struct pace pace = pace_begin(START, 1000, 0.5, 1);
    unsigned warm = 0, counted = 0;
    while (!pace_is_done(&pace)) { /* all of them long after the window */
        bool measured;
        assert_true(pace_is_due(&pace, START + 60 * (uint64_t)SECOND));
        pace_take(&pace, &measured);
        measured ? counted++ : warm++;
    }
    assert_int_equal(warm, 500);
    assert_int_equal(counted, 1000);
    assert_false(pace_is_due(&pace, UINT64_MAX));
}

static void a_window_too_short_for_its_rate_has_one_request(void **state)
{
    (void)state;
    struct pace pace = pace_begin(START, 1, 0, 0.1);
    assert_int_equal(pace.total_count, 1);
}

/* One connection to a server that needs 0.1 ms for a request, except that it stalls for 200 ms at
 * half a second. */
static uint64_t reply_ns(uint64_t sent)
{
    uint64_t stall = START + SECOND / 2;
    return (sent < stall || sent >= stall + 200 * MS ? sent : stall + 200 * MS) + MS / 10;
}

static void a_stall_is_seen_by_every_request_that_was_due_meanwhile(void **state)
{
    (void)state;
    static struct latency open, closed;
    struct pace pace = pace_begin(START, 1000, 0, 1);
    uint64_t now = START;
    while (!pace_is_done(&pace)) {
        bool measured;
        now += pace_wait_ns(&pace, now);
        uint64_t due = pace_take(&pace, &measured), sent = now;
        now = reply_ns(sent);
        latency_add(&open, now - due);
        latency_add(&closed, now - sent);
    }
    /* A fifth of the requests were due in the stall. Counted from when they were sent, only one is
     * slow. */
    assert_true(latency_percentile_us(&open, 90) > 90000);
    assert_true(latency_percentile_us(&open, 75) < 200);
    assert_true(latency_percentile_us(&closed, 99.8) < 200);
    assert_int_equal(open.max_ns, closed.max_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_due_at_a_constant_rate),
        cmocka_unit_test(a_rate_does_not_drift_in_an_hour),
        cmocka_unit_test(a_request_is_due_at_its_time_and_not_before),
        cmocka_unit_test(the_first_requests_are_warm_up_however_late_they_are_sent),
        cmocka_unit_test(a_window_too_short_for_its_rate_has_one_request),
        cmocka_unit_test(a_stall_is_seen_by_every_request_that_was_due_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
