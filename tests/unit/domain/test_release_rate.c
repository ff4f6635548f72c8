/* The pace of releases and the advice that is made of it. */
#include "base/support.h"

#include "domain/admission/release_rate.h"

static const int64_t NOW_MS = INT64_C(1767225600000);

/* A pace of two releases, the last of them at NOW_MS. */
static struct release_rate pace_of(int64_t interval_ms)
{
    struct release_rate p = release_rate_unknown();
    release_rate_note(&p, NOW_MS - interval_ms);
    release_rate_note(&p, NOW_MS);
    return p;
}

static void assert_advice(int64_t interval_ms, int64_t since_ms, int64_t expected_s)
{
    struct release_rate p = pace_of(interval_ms);
    int64_t got = release_rate_retry_after_s(&p, NOW_MS + since_ms);
    if (got != expected_s)
        fail_msg("every %lld ms, %lld ms ago: %lld s, wanted %lld s", (long long)interval_ms,
                 (long long)since_ms, (long long)got, (long long)expected_s);
}

/* --- the pace --- */

static void nothing_is_known_before_the_first_release(void **state)
{
    (void)state;
    struct release_rate p = release_rate_unknown();
    assert_int_equal(p.last_freed_ms, -1);
    assert_int_equal(p.interval_ms, -1);
    assert_int_equal(release_rate_retry_after_s(&p, 0), 1);
    assert_int_equal(release_rate_retry_after_s(&p, NOW_MS), 1);
    assert_int_equal(release_rate_retry_after_s(&p, INT64_MAX), 1);
}

static void one_release_makes_no_pace(void **state)
{
    (void)state;
    struct release_rate p = release_rate_unknown();
    release_rate_note(&p, NOW_MS);
    assert_true(p.last_freed_ms == NOW_MS);
    assert_int_equal(p.interval_ms, -1);
    assert_int_equal(release_rate_retry_after_s(&p, NOW_MS + 30000), 1);
}

static void a_release_at_time_zero_is_one(void **state)
{
    (void)state;
    struct release_rate p = release_rate_unknown();
    release_rate_note(&p, 0);
    release_rate_note(&p, 4000);
    assert_int_equal(p.interval_ms, 4000);
}

static void the_second_release_sets_the_interval(void **state)
{
    (void)state;
    struct release_rate p = pace_of(8000);
    assert_true(p.last_freed_ms == NOW_MS);
    assert_int_equal(p.interval_ms, 8000);
}

static void a_later_release_counts_a_quarter(void **state)
{
    (void)state;
    struct release_rate p = pace_of(8000);
    release_rate_note(&p, NOW_MS + 4000);
    assert_int_equal(p.interval_ms, 7000);
    release_rate_note(&p, NOW_MS + 4000);
    assert_int_equal(p.interval_ms, 5250);
    release_rate_note(&p, NOW_MS + 4000 + 20000);
    assert_int_equal(p.interval_ms, 8937);
    assert_true(p.last_freed_ms == NOW_MS + 24000);
}

static void a_steady_pace_is_found_from_above_and_below(void **state)
{
    (void)state;
    static const int64_t FIRST[] = {0, 1, 2500, 60000};
    for (size_t i = 0; i < ARRAY_LEN(FIRST); i++) {
        struct release_rate p = pace_of(FIRST[i]);
        for (int64_t n = 1; n <= 60; n++)
            release_rate_note(&p, NOW_MS + n * 2500);
        assert_in_range(p.interval_ms, 2497, 2500); /* rounding down may hold it 3 ms short */
    }
}

static void a_clock_that_went_back_counts_as_no_time(void **state)
{
    (void)state;
    struct release_rate p = pace_of(8000);
    release_rate_note(&p, NOW_MS - 3600000);
    assert_int_equal(p.interval_ms, 6000);
    release_rate_note(&p, NOW_MS - 3600000 + 2000);
    assert_int_equal(p.interval_ms, 5000);
    release_rate_note(&p, 0);
    assert_int_equal(p.interval_ms, 3750);
    assert_int_equal(p.last_freed_ms, 0);
}

static void a_long_pause_counts_as_a_minute_and_is_soon_forgotten(void **state)
{
    (void)state;
    struct release_rate p = pace_of(1000);
    int64_t now = NOW_MS + INT64_C(8) * 3600 * 1000; /* a night */
    release_rate_note(&p, now);
    assert_int_equal(p.interval_ms, 15750);
    for (int n = 0; n < 10; n++)
        release_rate_note(&p, now += 1000);
    assert_true(p.interval_ms < 2000);
}

static void the_ends_of_time_do_not_overflow(void **state)
{
    (void)state;
    struct release_rate p = release_rate_unknown();
    release_rate_note(&p, 0);
    release_rate_note(&p, INT64_MAX);
    assert_int_equal(p.interval_ms, 60000);
    assert_int_equal(release_rate_retry_after_s(&p, INT64_MAX), 60);
    assert_int_equal(release_rate_retry_after_s(&p, 0), 60);
    for (int i = 0; i < 100; i++) {
        release_rate_note(&p, 0);
        release_rate_note(&p, INT64_MAX);
        assert_in_range(p.interval_ms, 0, 60000);
    }
    release_rate_note(&p, 0);
    assert_int_equal(release_rate_retry_after_s(&p, INT64_MAX), 60);
}

/* --- the advice --- */

static void the_advice_is_the_rest_of_the_interval_rounded_up(void **state)
{
    (void)state;
    assert_advice(10000, 0, 10);
    assert_advice(10000, 1, 10);
    assert_advice(10000, 999, 10);
    assert_advice(10000, 1000, 9);
    assert_advice(10000, 8999, 2);
    assert_advice(10000, 9000, 1);
    assert_advice(10001, 0, 11);
    assert_advice(9999, 0, 10);
}

static void the_advice_is_never_less_than_a_second(void **state)
{
    (void)state;
    assert_advice(0, 0, 1);
    assert_advice(1, 0, 1);
    assert_advice(1, 1, 1);
    assert_advice(10000, 10000, 1);
    assert_advice(10000, 10001, 1);
}

static void the_advice_is_never_more_than_a_minute(void **state)
{
    (void)state;
    assert_advice(59000, 0, 59);
    assert_advice(59001, 0, 60);
    assert_advice(60000, 0, 60);
    assert_advice(60001, 0, 60);
    assert_advice(INT64_C(86400000), 0, 60);
    assert_advice(10, INT64_C(86400000), 60);
}

static void an_overdue_release_is_expected_as_long_again_as_it_is_late(void **state)
{
    (void)state;
    assert_advice(1000, 2000, 1);
    assert_advice(1000, 2001, 2);
    assert_advice(1000, 6000, 5);
    assert_advice(10000, 15000, 5);
    assert_advice(10000, 69000, 59);
    assert_advice(10000, 69001, 60);
    assert_advice(0, 5000, 5);
}

static void the_longer_the_silence_the_longer_the_advice(void **state)
{
    (void)state;
    for (int64_t interval = 0; interval <= 60000; interval += 777) {
        struct release_rate p = pace_of(interval);
        int64_t before = 1;
        for (int64_t late = 0; late <= 100000; late += 100) {
            int64_t advice = release_rate_retry_after_s(&p, NOW_MS + interval + late);
            assert_in_range(advice, before, 60);
            before = advice;
        }
        assert_int_equal(before, 60);
    }
}

static void a_clock_behind_the_last_release_gives_the_whole_interval(void **state)
{
    (void)state;
    assert_advice(10000, -1, 10);
    assert_advice(10000, -NOW_MS, 10);
}

static void asking_changes_nothing(void **state)
{
    (void)state;
    struct release_rate p = pace_of(8000);
    (void)release_rate_retry_after_s(&p, NOW_MS + 500000);
    assert_true(p.last_freed_ms == NOW_MS);
    assert_int_equal(p.interval_ms, 8000);
}

static void freed_before_1970(void)
{
    struct release_rate p = release_rate_unknown();
    release_rate_note(&p, -1);
}

static void asked_before_1970(void)
{
    struct release_rate p = pace_of(1000);
    (void)release_rate_retry_after_s(&p, -1);
}

static void a_time_before_1970_breaks_the_contract(void **state)
{
    (void)state;
    assert_true(aborts(freed_before_1970));
    assert_true(aborts(asked_before_1970));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_before_the_first_release),
        cmocka_unit_test(one_release_makes_no_pace),
        cmocka_unit_test(a_release_at_time_zero_is_one),
        cmocka_unit_test(the_second_release_sets_the_interval),
        cmocka_unit_test(a_later_release_counts_a_quarter),
        cmocka_unit_test(a_steady_pace_is_found_from_above_and_below),
        cmocka_unit_test(a_clock_that_went_back_counts_as_no_time),
        cmocka_unit_test(a_long_pause_counts_as_a_minute_and_is_soon_forgotten),
        cmocka_unit_test(the_ends_of_time_do_not_overflow),
        cmocka_unit_test(the_advice_is_the_rest_of_the_interval_rounded_up),
        cmocka_unit_test(the_advice_is_never_less_than_a_second),
        cmocka_unit_test(the_advice_is_never_more_than_a_minute),
        cmocka_unit_test(an_overdue_release_is_expected_as_long_again_as_it_is_late),
        cmocka_unit_test(the_longer_the_silence_the_longer_the_advice),
        cmocka_unit_test(a_clock_behind_the_last_release_gives_the_whole_interval),
        cmocka_unit_test(asking_changes_nothing),
        cmocka_unit_test(a_time_before_1970_breaks_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
