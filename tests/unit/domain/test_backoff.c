/* Retry delays: each policy's range, both its ends, and arithmetic at the edges of 64 bits. */
#include "base/support.h"

#include "domain/retry/backoff.h"

static const int64_t ATTEMPTS[] = {1, 2, 3, 10, 61, 62, 63, 64, 65, 10000, INT64_MAX};
static const int64_t SIZES[] = {0,
                                1,
                                2,
                                3,
                                7,
                                1000,
                                86400,
                                INT32_MAX,
                                INT64_C(1) << 32,
                                INT64_MAX / 3,
                                INT64_MAX / 3 + 1,
                                INT64_MAX / 2,
                                INT64_MAX / 2 + 1,
                                INT64_MAX - 1,
                                INT64_MAX};

/* min(max, base · 2^(attempt - 1)) by doubling one step at a time. */
static int64_t naive_ceiling(int64_t base, int64_t max, int64_t attempt)
{
    __uint128_t ceiling = (__uint128_t)base;
    for (int64_t n = 1; n < attempt && ceiling != 0 && ceiling < (__uint128_t)max; n++)
        ceiling *= 2;
    return (int64_t)MIN(ceiling, (__uint128_t)max);
}

static void naive_range(const struct backoff *b, int64_t attempt, int64_t previous_ms,
                        int64_t *ret_low, int64_t *ret_high)
{
    int64_t ceiling = naive_ceiling(b->base_ms, b->max_ms, attempt);
    __uint128_t tripled = (__uint128_t)previous_ms * 3;
    *ret_low = 0;
    *ret_high = ceiling;
    if (b->policy == BACKOFF_FIXED || b->policy == BACKOFF_DECORRELATED)
        *ret_low = *ret_high = MIN(b->base_ms, b->max_ms);
    if (b->policy == BACKOFF_EQUAL_JITTER)
        *ret_low = ceiling / 2;
    if (b->policy == BACKOFF_DECORRELATED && b->base_ms > 0 && tripled > (__uint128_t)*ret_low)
        *ret_high = (int64_t)MIN(tripled, (__uint128_t)b->max_ms);
}

/* The least and the greatest of many delays. */
static void extremes(const struct backoff *b, int64_t attempt, int64_t previous_ms,
                     int64_t *ret_least, int64_t *ret_greatest)
{
    struct rng r = {7};
    *ret_least = INT64_MAX;
    *ret_greatest = -1;
    for (int i = 0; i < 4000; i++) {
        int64_t delay = backoff_delay_ms(b, attempt, previous_ms, rng_next(&r));
        *ret_least = MIN(*ret_least, delay);
        *ret_greatest = MAX(*ret_greatest, delay);
    }
}

static void assert_reaches(const struct backoff *b, int64_t attempt, int64_t previous_ms,
                           int64_t low, int64_t high)
{
    int64_t least;
    int64_t greatest;
    extremes(b, attempt, previous_ms, &least, &greatest);
    if (least != low || greatest != high)
        fail_msg("%s, attempt %lld: %lld … %lld, wanted %lld … %lld",
                 backoff_policy_name(b->policy), (long long)attempt, (long long)least,
                 (long long)greatest, (long long)low, (long long)high);
}

/* --- the ranges --- */

static void a_fixed_delay_is_the_base_at_every_attempt(void **state)
{
    (void)state;
    struct backoff b = {BACKOFF_FIXED, 250, 60000};
    for (size_t i = 0; i < ARRAY_LEN(ATTEMPTS); i++)
        assert_reaches(&b, ATTEMPTS[i], 999, 250, 250);
}

static void full_jitter_reaches_zero_and_the_doubling_ceiling(void **state)
{
    (void)state;
    struct backoff b = {BACKOFF_FULL_JITTER, 10, 100};
    assert_reaches(&b, 1, 0, 0, 10);
    assert_reaches(&b, 2, 0, 0, 20);
    assert_reaches(&b, 3, 0, 0, 40);
    assert_reaches(&b, 4, 0, 0, 80);
    assert_reaches(&b, 5, 0, 0, 100);
    assert_reaches(&b, 10000, 0, 0, 100);
}

static void equal_jitter_reaches_half_the_ceiling_and_the_ceiling(void **state)
{
    (void)state;
    struct backoff b = {BACKOFF_EQUAL_JITTER, 10, 75};
    assert_reaches(&b, 1, 0, 5, 10);
    assert_reaches(&b, 2, 0, 10, 20);
    assert_reaches(&b, 3, 0, 20, 40);
    assert_reaches(&b, 4, 0, 37, 75); /* an odd ceiling: the half is rounded down */
    assert_reaches(&b, INT64_MAX, 0, 37, 75);
}

static void a_decorrelated_delay_reaches_the_base_and_three_times_the_last(void **state)
{
    (void)state;
    struct backoff b = {BACKOFF_DECORRELATED, 10, 200};
    assert_reaches(&b, 1, 0, 10, 10);
    assert_reaches(&b, 2, 3, 10, 10); /* less than a third of the base */
    assert_reaches(&b, 2, 4, 10, 12);
    assert_reaches(&b, 2, 10, 10, 30);
    assert_reaches(&b, 9, 66, 10, 198);
    assert_reaches(&b, 9, 67, 10, 200);
    assert_reaches(&b, 9, INT64_MAX, 10, 200);
}

static void only_a_decorrelated_delay_looks_at_the_last(void **state)
{
    (void)state;
    for (enum backoff_policy p = 0; p < BACKOFF_DECORRELATED; p++) {
        struct backoff b = {p, 1000, 60000};
        for (uint64_t seed = 0; seed < 100; seed++)
            assert_int_equal(backoff_delay_ms(&b, 5, 0, seed),
                             backoff_delay_ms(&b, 5, 40000, seed));
    }
}

static void a_chain_of_decorrelated_delays_grows_to_the_maximum_and_stays_in_range(void **state)
{
    (void)state;
    struct backoff b = {BACKOFF_DECORRELATED, 10, 5000};
    int64_t greatest = 0;
    int64_t previous = 0;
    for (int64_t attempt = 1; attempt <= 2000; attempt++) {
        int64_t delay = backoff_delay_ms(&b, attempt, previous, 42);
        assert_in_range(delay, 10, MIN(5000, MAX(10, previous * 3)));
        greatest = MAX(greatest, delay);
        previous = delay;
    }
    assert_true(greatest > 4900);
}

/* --- edges --- */

static void no_arguments_leave_the_range_of_their_policy(void **state)
{
    (void)state;
    static const uint64_t SEEDS[] = {0, 1, UINT64_MAX, 0x8000000000000000u, 0x61c8864680b583ebu};
    for (enum backoff_policy p = 0; p < BACKOFF_POLICY_COUNT; p++)
        for (size_t base = 0; base < ARRAY_LEN(SIZES); base++)
            for (size_t max = 0; max < ARRAY_LEN(SIZES); max++)
                for (size_t n = 0; n < ARRAY_LEN(ATTEMPTS); n++)
                    for (size_t last = 0; last < ARRAY_LEN(SIZES); last++) {
                        struct backoff b = {p, SIZES[base], SIZES[max]};
                        int64_t low;
                        int64_t high;
                        naive_range(&b, ATTEMPTS[n], SIZES[last], &low, &high);
                        for (size_t s = 0; s < ARRAY_LEN(SEEDS); s++) {
                            int64_t got = backoff_delay_ms(&b, ATTEMPTS[n], SIZES[last], SEEDS[s]);
                            if (got < low || got > high)
                                fail_msg("%s base %lld max %lld attempt %lld last %lld: %lld",
                                         backoff_policy_name(p), (long long)b.base_ms,
                                         (long long)b.max_ms, (long long)ATTEMPTS[n],
                                         (long long)SIZES[last], (long long)got);
                        }
                    }
}

/* With equal jitter the ceiling shows to within a part in thousands: the greatest of many delays.
 */
static void the_ceiling_is_exact_until_it_meets_the_maximum(void **state)
{
    (void)state;
    static const struct {
        int64_t base;
        int64_t attempt;
        int64_t ceiling;
    } ROWS[] = {
        {1, 62, INT64_C(1) << 61},
        {1, 63, INT64_C(1) << 62},
        {1, 64, INT64_MAX}, /* 2^63 would be one more */
        {1, 65, INT64_MAX},
        {2, 62, INT64_C(1) << 62},
        {2, 63, INT64_MAX},
        {3, 62, INT64_C(3) << 61},
        {3, 63, INT64_MAX},
        {INT64_MAX / 2, 1, INT64_MAX / 2},
        {INT64_MAX / 2, 2, INT64_MAX - 1},
        {INT64_MAX / 2 + 1, 2, INT64_MAX},
        {INT64_MAX, 1, INT64_MAX},
        {INT64_MAX, 2, INT64_MAX},
        {1, 10000, INT64_MAX},
        {1, INT64_MAX, INT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct backoff b = {BACKOFF_EQUAL_JITTER, ROWS[i].base, INT64_MAX};
        assert_true(naive_ceiling(b.base_ms, b.max_ms, ROWS[i].attempt) == ROWS[i].ceiling);
        int64_t least;
        int64_t greatest;
        extremes(&b, ROWS[i].attempt, 0, &least, &greatest);
        int64_t half = ROWS[i].ceiling / 2;
        assert_true(least >= half && least < half + half / 500);
        assert_true(greatest <= ROWS[i].ceiling && greatest > ROWS[i].ceiling - half / 500);
    }
}

static void the_maximum_binds_only_when_the_product_exceeds_it(void **state)
{
    (void)state;
    struct backoff b = {BACKOFF_FULL_JITTER, 3, 0};
    for (int64_t max = 1; max <= 30; max++) {
        b.max_ms = max;
        for (int64_t attempt = 1; attempt <= 6; attempt++)
            assert_reaches(&b, attempt, 0, 0, MIN(max, INT64_C(3) << (attempt - 1)));
    }
}

static void a_base_of_zero_gives_no_delay(void **state)
{
    (void)state;
    for (enum backoff_policy p = 0; p < BACKOFF_POLICY_COUNT; p++) {
        struct backoff b = {p, 0, INT64_MAX};
        for (size_t i = 0; i < ARRAY_LEN(ATTEMPTS); i++)
            assert_reaches(&b, ATTEMPTS[i], 1000, 0, 0);
    }
}

static void a_maximum_of_zero_gives_no_delay(void **state)
{
    (void)state;
    for (enum backoff_policy p = 0; p < BACKOFF_POLICY_COUNT; p++) {
        struct backoff b = {p, 1000, 0};
        for (size_t i = 0; i < ARRAY_LEN(ATTEMPTS); i++)
            assert_reaches(&b, ATTEMPTS[i], 1000, 0, 0);
    }
}

static void a_maximum_below_the_base_caps_it(void **state)
{
    (void)state;
    static const int64_t LOW[] = {40, 0, 20, 40};
    for (enum backoff_policy p = 0; p < BACKOFF_POLICY_COUNT; p++) {
        struct backoff b = {p, 1000, 40};
        assert_reaches(&b, 1, 0, LOW[p], 40);
        assert_reaches(&b, 10000, 40, LOW[p], 40);
    }
}

/* --- randomness --- */

static void the_same_arguments_give_the_same_delay(void **state)
{
    (void)state;
    for (enum backoff_policy p = 0; p < BACKOFF_POLICY_COUNT; p++) {
        struct backoff b = {p, 1000, 3600000};
        for (uint64_t seed = 0; seed < 1000; seed++)
            assert_int_equal(backoff_delay_ms(&b, 4, 5000, seed),
                             backoff_delay_ms(&b, 4, 5000, seed));
    }
}

/* Another number here means that delays of the past can no longer be worked out. */
static void a_delay_is_the_same_in_every_build(void **state)
{
    (void)state;
    struct backoff b = {BACKOFF_FULL_JITTER, INT64_C(1) << 62, INT64_MAX};
    /* With a ceiling of 2^63 - 1 the delay is the upper 63 bits of splitmix64's output. */
    assert_true(backoff_delay_ms(&b, 2, 0, 0) == (int64_t)(0x6e789e6aa1b965f4u >> 1));
    assert_true(backoff_delay_ms(&b, 3, 0, 0) == (int64_t)(0x06c45d188009454fu >> 1));
}

static void one_seed_serves_all_attempts(void **state)
{
    (void)state;
    struct backoff b = {BACKOFF_FULL_JITTER, 1000000, 1000000};
    for (uint64_t seed = 0; seed < 100; seed++) {
        int64_t sum = 0;
        for (int64_t attempt = 1; attempt <= 1000; attempt++) {
            int64_t delay = backoff_delay_ms(&b, attempt, 0, seed);
            assert_int_not_equal(delay, backoff_delay_ms(&b, attempt + 1, 0, seed));
            sum += delay;
        }
        /* The mean of a thousand uniform draws: 0.29 / √1000 is under one percent of the range. */
        assert_in_range(sum / 1000, 440000, 560000);
    }
}

/* Chi-squared over `ways` values with `each` expected draws of each; 4.3 deviations of slack. */
static void assert_uniform(const struct backoff *b, int64_t previous_ms, int64_t low, size_t ways)
{
    enum { EACH = 2000, WAYS_MAX = 200 };
    int64_t seen[WAYS_MAX] = {0};
    assert_true(ways <= WAYS_MAX);
    struct rng r = {ways};
    for (size_t i = 0; i < ways * EACH; i++) {
        int64_t delay = backoff_delay_ms(b, 1, previous_ms, rng_next(&r));
        assert_in_range(delay, low, low + (int64_t)ways - 1);
        seen[delay - low]++;
    }
    int64_t squares = 0;
    for (size_t i = 0; i < ways; i++)
        squares += (seen[i] - EACH) * (seen[i] - EACH);
    double degrees = (double)(ways - 1);
    double excess = (double)squares / EACH - degrees;
    assert_true(excess * excess < 4.3 * 4.3 * 2 * degrees);
}

static void every_value_of_a_range_is_as_likely_as_any_other(void **state)
{
    (void)state;
    for (int64_t ways = 2; ways <= 150; ways += 37) {
        struct backoff full = {BACKOFF_FULL_JITTER, ways - 1, INT64_MAX};
        assert_uniform(&full, 0, 0, (size_t)ways);
        struct backoff equal = {BACKOFF_EQUAL_JITTER, ways, INT64_MAX};
        assert_uniform(&equal, 0, ways / 2, (size_t)(ways - ways / 2 + 1));
        struct backoff loose = {BACKOFF_DECORRELATED, ways, ways * 2};
        assert_uniform(&loose, ways * 2, ways, (size_t)ways + 1);
    }
}

/* A remainder would make the lower half of a range of 3/4 · 2^64 twice as likely as the upper. */
static void a_range_near_the_width_of_the_seed_is_not_biased(void **state)
{
    (void)state;
    struct backoff b = {BACKOFF_FULL_JITTER, INT64_MAX / 4 * 3, INT64_MAX / 4 * 3};
    struct rng r = {1};
    int64_t thirds[3] = {0};
    for (int i = 0; i < 90000; i++)
        thirds[backoff_delay_ms(&b, 1, 0, rng_next(&r)) / (INT64_MAX / 4 + 1)]++;
    for (size_t i = 0; i < 3; i++)
        assert_in_range(thirds[i], 29000, 31000);
}

/* --- names and contracts --- */

static void names_round_trip(void **state)
{
    (void)state;
    for (enum backoff_policy p = 0; p < BACKOFF_POLICY_COUNT; p++)
        assert_int_equal(backoff_policy_of(str_of(backoff_policy_name(p))), p);
    assert_string_equal(backoff_policy_name(BACKOFF_EQUAL_JITTER), "equal_jitter");
}

static void a_name_that_is_none_is_no_policy(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"", "Fixed", "fixed ", "full", "jitter", "BACKOFF_FIXED"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        assert_int_equal(backoff_policy_of(str_of(NAMES[i])), BACKOFF_POLICY_COUNT);
    assert_int_equal(backoff_policy_of(STR_NONE), BACKOFF_POLICY_COUNT);
}

static void delay_with(enum backoff_policy policy, int64_t base_ms, int64_t max_ms, int64_t attempt,
                       int64_t previous_ms)
{
    struct backoff b = {policy, base_ms, max_ms};
    (void)backoff_delay_ms(&b, attempt, previous_ms, 0);
}

static void attempt_zero(void)
{
    delay_with(BACKOFF_FIXED, 1, 1, 0, 0);
}

static void negative_base(void)
{
    delay_with(BACKOFF_FIXED, -1, 1, 1, 0);
}

static void negative_maximum(void)
{
    delay_with(BACKOFF_FIXED, 1, -1, 1, 0);
}

static void negative_last_delay(void)
{
    delay_with(BACKOFF_FIXED, 1, 1, 1, -1);
}

static void policy_past_the_table(void)
{
    delay_with(BACKOFF_POLICY_COUNT, 1, 1, 1, 0);
}

static void name_past_the_table(void)
{
    (void)backoff_policy_name(BACKOFF_POLICY_COUNT);
}

static void numbers_outside_their_range_break_the_contract(void **state)
{
    (void)state;
    assert_true(aborts(attempt_zero));
    assert_true(aborts(negative_base));
    assert_true(aborts(negative_maximum));
    assert_true(aborts(negative_last_delay));
    assert_true(aborts(policy_past_the_table));
    assert_true(aborts(name_past_the_table));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fixed_delay_is_the_base_at_every_attempt),
        cmocka_unit_test(full_jitter_reaches_zero_and_the_doubling_ceiling),
        cmocka_unit_test(equal_jitter_reaches_half_the_ceiling_and_the_ceiling),
        cmocka_unit_test(a_decorrelated_delay_reaches_the_base_and_three_times_the_last),
        cmocka_unit_test(only_a_decorrelated_delay_looks_at_the_last),
        cmocka_unit_test(a_chain_of_decorrelated_delays_grows_to_the_maximum_and_stays_in_range),
        cmocka_unit_test(no_arguments_leave_the_range_of_their_policy),
        cmocka_unit_test(the_ceiling_is_exact_until_it_meets_the_maximum),
        cmocka_unit_test(the_maximum_binds_only_when_the_product_exceeds_it),
        cmocka_unit_test(a_base_of_zero_gives_no_delay),
        cmocka_unit_test(a_maximum_of_zero_gives_no_delay),
        cmocka_unit_test(a_maximum_below_the_base_caps_it),
        cmocka_unit_test(the_same_arguments_give_the_same_delay),
        cmocka_unit_test(a_delay_is_the_same_in_every_build),
        cmocka_unit_test(one_seed_serves_all_attempts),
        cmocka_unit_test(every_value_of_a_range_is_as_likely_as_any_other),
        cmocka_unit_test(a_range_near_the_width_of_the_seed_is_not_biased),
        cmocka_unit_test(names_round_trip),
        cmocka_unit_test(a_name_that_is_none_is_no_policy),
        cmocka_unit_test(numbers_outside_their_range_break_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
