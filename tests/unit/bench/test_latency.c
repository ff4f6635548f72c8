/* The benchmark's histogram: percentiles against sorted samples, at every scale. */
#include "testing.h"

#include "bench/latency.h"

#include <stdlib.h>
#include <string.h>

#define ERROR_MAX 0.004 /* latency.h */

static struct latency lat;

static void expect_us(double percent, double wanted_us)
{
    double got = latency_percentile_us(&lat, percent);
    if (got < wanted_us * (1 - ERROR_MAX) || got > wanted_us * (1 + ERROR_MAX))
        fail_msg("p%g is %g us instead of %g us", percent, got, wanted_us);
}

static int clear(void **state)
{
    (void)state;
    lat = (struct latency){0};
    return 0;
}

static void without_samples_every_percentile_is_zero(void **state)
{
    (void)state;
    assert_true(latency_percentile_us(&lat, 50) == 0);
    assert_true(latency_percentile_us(&lat, 100) == 0);
}

static void one_sample_is_every_percentile(void **state)
{
    (void)state;
    latency_add(&lat, 123456789);
    expect_us(0.1, 123456.789);
    expect_us(99.9, 123456.789);
    assert_int_equal(lat.count, 1);
    assert_int_equal(lat.max_ns, 123456789);
}

static void small_durations_are_exact(void **state)
{
    (void)state;
    for (uint64_t ns = 0; ns < 2 * LATENCY_SUB; ns++)
        latency_add(&lat, ns);
    assert_true(latency_percentile_us(&lat, 50) == 0.127);
    assert_true(latency_percentile_us(&lat, 100) == 0.255);
}

static void a_percentile_is_the_sample_of_that_rank(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 100000; i++)
        latency_add(&lat, i * 1000);
    expect_us(50, 50000);
    expect_us(90, 90000);
    expect_us(99, 99000);
    expect_us(99.9, 99900);
    expect_us(100, 100000);
}

static void a_few_slow_samples_show_in_the_tail_only(void **state)
{
    (void)state;
    for (int i = 0; i < 9980; i++)
        latency_add(&lat, 100000);
    for (int i = 0; i < 20; i++)
        latency_add(&lat, 50000000);
    expect_us(99, 100);
    expect_us(99.9, 50000);
}

static void no_percentile_is_above_the_largest_sample(void **state)
{
    (void)state;
    latency_add(&lat, ((uint64_t)1 << 40) + 1);
    assert_true(latency_percentile_us(&lat, 100) <= (double)lat.max_ns / 1000);
    latency_add(&lat, UINT64_MAX);
    assert_true(latency_percentile_us(&lat, 100) <= (double)UINT64_MAX / 1000);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void random_samples_agree_with_sorted_ones(void **state)
{
    (void)state;
    static uint64_t samples[20000];
    static const double PERCENTS[] = {1, 25, 50, 90, 99, 99.9, 99.99};
    size_t count = sizeof samples / sizeof samples[0];
    srand48(15);
    for (size_t i = 0; i < count; i++) { /* as many of each scale, from nanoseconds to an hour */
        samples[i] = ((uint64_t)lrand48() << 11) >> (lrand48() % 41);
        latency_add(&lat, samples[i]);
    }
    qsort(samples, count, sizeof samples[0], by_size);
    for (size_t i = 0; i < sizeof PERCENTS / sizeof PERCENTS[0]; i++) {
        size_t rank = (size_t)((double)count * PERCENTS[i] / 100 + 0.5);
        expect_us(PERCENTS[i], (double)samples[rank - 1] / 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_samples_every_percentile_is_zero, clear),
        cmocka_unit_test_setup(one_sample_is_every_percentile, clear),
        cmocka_unit_test_setup(small_durations_are_exact, clear),
        cmocka_unit_test_setup(a_percentile_is_the_sample_of_that_rank, clear),
        cmocka_unit_test_setup(a_few_slow_samples_show_in_the_tail_only, clear),
        cmocka_unit_test_setup(no_percentile_is_above_the_largest_sample, clear),
        cmocka_unit_test_setup(random_samples_agree_with_sorted_ones, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
