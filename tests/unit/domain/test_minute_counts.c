/* Figures of a minute, and percentiles of waits. */
#include "testing.h"

#include "domain/minute_counts.h"

static void each_end_of_a_run_has_its_figure(void **state)
{
    (void)state;
    assert_int_equal(minute_figure_of_end(RUN_SUCCEEDED), MINUTE_SUCCEEDED);
    assert_int_equal(minute_figure_of_end(RUN_FAILED), MINUTE_FAILED);
    assert_int_equal(minute_figure_of_end(RUN_DENIED), MINUTE_DENIED);
    assert_int_equal(minute_figure_of_end(RUN_CANCELLED), MINUTE_CANCELLED);
    assert_int_equal(minute_figure_of_end(RUN_TIMED_OUT), MINUTE_TIMED_OUT);
}

static void a_percentile_is_less_than_twice_the_exact_figure(void **state)
{
    (void)state;
    for (int64_t ms = 1; ms < 100 * 1000; ms += 1 + ms / 7) {
        struct minute_counts c = {0};
        minute_counts_add_wait(&c, ms);
        assert_in_range(minute_counts_percentile(&c, 50), ms, 2 * ms - 1);
    }
}

static void percentiles_count_from_the_shortest_wait(void **state)
{
    (void)state;
    struct minute_counts c = {0};
    assert_int_equal(minute_counts_percentile(&c, 50), -1);
    for (int i = 0; i < 94; i++)
        minute_counts_add_wait(&c, 0);
    for (int i = 0; i < 5; i++)
        minute_counts_add_wait(&c, 100);
    minute_counts_add_wait(&c, INT64_MAX);
    assert_int_equal(minute_counts_waits(&c), 100);
    assert_int_equal(minute_counts_percentile(&c, 50), 1);
    assert_int_equal(minute_counts_percentile(&c, 95), 128);
    assert_int_equal(minute_counts_percentile(&c, 99), 128);
    assert_int_equal(minute_counts_percentile(&c, 100), INT64_C(1) << (WAIT_BUCKETS - 1));
}

static void minutes_are_summed(void **state)
{
    (void)state;
    struct minute_counts sum = {.figures = {[MINUTE_STARTS] = 1}};
    struct minute_counts more = {.figures = {[MINUTE_STARTS] = 2, [MINUTE_REFUSED] = 3}};
    minute_counts_add_wait(&more, 5);
    minute_counts_add(&sum, &more);
    minute_counts_add(&sum, &more);
    assert_int_equal(sum.figures[MINUTE_STARTS], 5);
    assert_int_equal(sum.figures[MINUTE_REFUSED], 6);
    assert_int_equal(minute_counts_waits(&sum), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_end_of_a_run_has_its_figure),
        cmocka_unit_test(a_percentile_is_less_than_twice_the_exact_figure),
        cmocka_unit_test(percentiles_count_from_the_shortest_wait),
        cmocka_unit_test(minutes_are_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
