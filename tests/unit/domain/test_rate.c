/* The token bucket against a naive one that counts in whole fractions, and under clocks that jump.
 */
#include "base/support.h"

#include "domain/admission/rate.h"

static const int64_t YEAR_2026_MS = INT64_C(1767225600000);
static const int64_t YEAR_9999_MS = INT64_C(253402300799999); /* its last millisecond */
static const int64_t HOUR_MS = INT64_C(3600) * 1000;

/* How many are admitted at one instant. */
static int64_t drain(const struct rate_limit *r, int64_t now_ms, int64_t *full_at_ns)
{
    int64_t taken = 0;
    int64_t wait_ms;
    while (rate_take(r, now_ms, full_at_ns, &wait_ms))
        taken++;
    return taken;
}

static bool takes(const struct rate_limit *r, int64_t now_ms, int64_t *full_at_ns)
{
    int64_t wait_ms = -1;
    int64_t before = *full_at_ns;
    bool taken = rate_take(r, now_ms, full_at_ns, &wait_ms);
    if (taken)
        assert_int_equal(wait_ms, -1);
    else
        assert_true(wait_ms >= 1 && *full_at_ns == before);
    return taken;
}

static int64_t depth_ns(const struct rate_limit *r)
{
    return (1000000000 + r->per_second - 1) / r->per_second * r->burst;
}

/* --- a bucket that stands still --- */

static void a_full_bucket_gives_exactly_its_burst_at_one_instant(void **state)
{
    (void)state;
    static const int64_t SIZES[] = {1, 2, 3, 7, 10, 999, 1000, 999999, 1000000};
    static const int64_t TIMES[] = {
        0, 1, 1767225600000, 9223372036854, 9223372036855, 253402300799999};
    for (size_t rate = 0; rate < ARRAY_LEN(SIZES); rate++)
        for (size_t burst = 0; burst < ARRAY_LEN(SIZES); burst++)
            for (size_t t = 0; t < ARRAY_LEN(TIMES); t++) {
                struct rate_limit r = {SIZES[rate], SIZES[burst]};
                if (r.burst > 1000 && (t != 4 || rate % 4 != 0))
                    continue; /* a million calls each */
                int64_t full_at_ns = 0;
                assert_int_equal(rate_available(&r, TIMES[t], full_at_ns), r.burst);
                assert_int_equal(drain(&r, TIMES[t], &full_at_ns), r.burst);
                assert_int_equal(rate_available(&r, TIMES[t], full_at_ns), 0);
            }
}

static void what_is_available_is_what_can_be_taken(void **state)
{
    (void)state;
    struct rng g = {3};
    for (int i = 0; i < 3000; i++) {
        struct rate_limit r = {1 + (int64_t)rng_below(&g, 50), 1 + (int64_t)rng_below(&g, 50)};
        int64_t now = YEAR_2026_MS;
        int64_t full_at_ns = 0;
        for (int step = 0; step < 10; step++) {
            int64_t available = rate_available(&r, now, full_at_ns);
            assert_in_range(available, 0, r.burst);
            int64_t copy = full_at_ns;
            assert_int_equal(drain(&r, now, &copy), available);
            for (int64_t n = (int64_t)rng_below(&g, (uint64_t)available + 1); n > 0; n--)
                assert_true(takes(&r, now, &full_at_ns));
            now += (int64_t)rng_below(&g, 1000) - 200; /* sometimes back */
        }
    }
}

static void without_a_limit_all_are_admitted_and_nothing_is_kept(void **state)
{
    (void)state;
    struct rate_limit r = {0, 0};
    int64_t full_at_ns = 77;
    for (int i = 0; i < 1000; i++)
        assert_true(takes(&r, YEAR_2026_MS, &full_at_ns));
    assert_int_equal(full_at_ns, 77);
    assert_true(rate_available(&r, YEAR_2026_MS, full_at_ns) == INT64_MAX);
}

static void a_refusal_leaves_the_bucket_and_a_token_leaves_the_wait_untouched(void **state)
{
    (void)state;
    struct rate_limit r = {10, 1};
    int64_t full_at_ns = 0;
    int64_t wait_ms = 77;
    assert_true(rate_take(&r, YEAR_2026_MS, &full_at_ns, &wait_ms));
    assert_int_equal(wait_ms, 77);
    int64_t kept = full_at_ns;
    assert_true(kept == (YEAR_2026_MS + 100) * 1000000);
    assert_false(rate_take(&r, YEAR_2026_MS + 1, &full_at_ns, &wait_ms));
    assert_int_equal(wait_ms, 99);
    assert_true(full_at_ns == kept);
}

/* --- a clock that runs --- */

static void a_bucket_is_full_again_when_it_says_and_no_fuller_later(void **state)
{
    (void)state;
    struct rate_limit r = {4, 10};
    int64_t full_at_ns = 0;
    (void)drain(&r, YEAR_2026_MS, &full_at_ns);
    assert_int_equal(rate_available(&r, YEAR_2026_MS + 249, full_at_ns), 0);
    assert_int_equal(rate_available(&r, YEAR_2026_MS + 250, full_at_ns), 1);
    assert_int_equal(rate_available(&r, YEAR_2026_MS + 2499, full_at_ns), 9);
    assert_int_equal(rate_available(&r, YEAR_2026_MS + 2500, full_at_ns), 10);
    assert_int_equal(rate_available(&r, YEAR_2026_MS + 100 * HOUR_MS, full_at_ns), 10);
}

static void after_the_wait_there_is_a_token_and_a_millisecond_before_there_is_none(void **state)
{
    (void)state;
    struct rng g = {9};
    for (int i = 0; i < 20000; i++) {
        struct rate_limit r = {1 + (int64_t)rng_below(&g, i % 2 ? 20 : RATE_MAX),
                               1 + (int64_t)rng_below(&g, 20)};
        int64_t now = YEAR_2026_MS + (int64_t)rng_below(&g, 1000);
        int64_t full_at_ns = 0;
        (void)drain(&r, now, &full_at_ns);
        now += (int64_t)rng_below(&g, 100);
        (void)drain(&r, now, &full_at_ns);
        int64_t wait_ms;
        assert_false(rate_take(&r, now, &full_at_ns, &wait_ms));
        assert_true(wait_ms >= 1);
        assert_false(takes(&r, now + wait_ms - 1, &full_at_ns));
        assert_true(takes(&r, now + wait_ms, &full_at_ns));
    }
}

/* A bucket of thousandths of a token: a millisecond brings per_second of them. Exact. */
struct naive {
    int64_t thousandths;
    int64_t at_ms;
};

static void naive_pass(struct naive *n, const struct rate_limit *r, int64_t now_ms)
{
    n->thousandths = MIN(n->thousandths + (now_ms - n->at_ms) * r->per_second, r->burst * 1000);
    n->at_ms = now_ms;
}

static bool naive_take(struct naive *n)
{
    if (n->thousandths < 1000)
        return false;
    n->thousandths -= 1000;
    return true;
}

/* Hours of callers that come in bursts and pauses. */
static int64_t next_call_ms(struct rng *g, const struct rate_limit *r)
{
    switch (rng_below(g, 20)) {
    case 0:
        return (int64_t)rng_below(g, (uint64_t)(r->burst * 2000 / r->per_second + 2));
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
        return (int64_t)rng_below(g, (uint64_t)(2000 / r->per_second + 2));
    default:
        return 0;
    }
}

static void a_rate_that_divides_a_second_is_kept_exactly(void **state)
{
    (void)state;
    static const struct rate_limit LIMITS[] = {{1, 1},    {1, 10},    {2, 3},       {5, 1},
                                               {8, 100},  {10, 10},   {64, 1000},   {1000, 5},
                                               {1000, 1}, {8000, 80}, {100000, 50}, {1000000, 999}};
    for (size_t i = 0; i < ARRAY_LEN(LIMITS); i++) {
        const struct rate_limit *r = &LIMITS[i];
        struct rng g = {i};
        struct naive naive = {r->burst * 1000, YEAR_2026_MS};
        int64_t full_at_ns = 0;
        int64_t now = YEAR_2026_MS;
        for (int call = 0; call < 300000 && now < YEAR_2026_MS + 10 * HOUR_MS; call++) {
            now += next_call_ms(&g, r);
            naive_pass(&naive, r, now);
            assert_int_equal(rate_available(r, now, full_at_ns), naive.thousandths / 1000);
            assert_int_equal(takes(r, now, &full_at_ns), naive_take(&naive));
        }
    }
}

static void a_rate_that_does_not_divide_a_second_is_never_exceeded(void **state)
{
    (void)state;
    static const struct rate_limit LIMITS[] = {
        {3, 1},    {3, 10},   {7, 3},        {13, 5},        {60, 1},
        {999, 10}, {1001, 1}, {333333, 400}, {999999, 1000}, {700001, 1000000}};
    for (size_t i = 0; i < ARRAY_LEN(LIMITS); i++) {
        const struct rate_limit *r = &LIMITS[i];
        struct rng g = {i};
        struct naive naive = {r->burst * 1000, YEAR_2026_MS};
        int64_t full_at_ns = 0;
        int64_t now = YEAR_2026_MS;
        for (int call = 0; call < 300000 && now < YEAR_2026_MS + 10 * HOUR_MS; call++) {
            now += next_call_ms(&g, r);
            naive_pass(&naive, r, now);
            assert_true(rate_available(r, now, full_at_ns) <= naive.thousandths / 1000);
            if (takes(r, now, &full_at_ns))
                assert_true(naive_take(&naive));
        }
    }
}

/* Somebody asks every millisecond for hours: what a caller gets is one token per cost, to the
 * token. */
static void a_greedy_caller_gets_the_burst_and_then_the_rate(void **state)
{
    (void)state;
    static const struct rate_limit LIMITS[] = {{1, 1},   {3, 1},   {3, 2},
                                               {7, 100}, {100, 1}, {999, 1000}};
    for (size_t i = 0; i < ARRAY_LEN(LIMITS); i++) {
        const struct rate_limit *r = &LIMITS[i];
        int64_t full_at_ns = 0;
        int64_t taken = drain(r, YEAR_2026_MS, &full_at_ns);
        for (int64_t ms = 1; ms <= HOUR_MS; ms++)
            taken += takes(r, YEAR_2026_MS + ms, &full_at_ns);
        int64_t cost = depth_ns(r) / r->burst;
        /* Where the cost is no whole number of milliseconds and the bucket holds but one token, the
         * rest of each millisecond is lost. */
        int64_t usable = r->burst == 1 ? (cost + 999999) / 1000000 * 1000000 : cost;
        assert_int_equal(taken, r->burst + HOUR_MS * 1000000 / usable);
        assert_true(taken <= r->burst + HOUR_MS / 1000 * r->per_second);
    }
}

static void a_caller_that_waits_as_asked_is_never_refused_twice(void **state)
{
    (void)state;
    struct rate_limit r = {7, 3};
    int64_t full_at_ns = 0;
    int64_t now = YEAR_2026_MS;
    int64_t taken = 0;
    int64_t wait_ms;
    while (now < YEAR_2026_MS + 4 * HOUR_MS) {
        if (rate_take(&r, now, &full_at_ns, &wait_ms)) {
            taken++;
            continue;
        }
        now += wait_ms;
        assert_true(rate_take(&r, now, &full_at_ns, &wait_ms));
        taken++;
    }
    int64_t due = 3 + (now - YEAR_2026_MS) * 7 / 1000;
    assert_in_range(taken, due - 1, due);
}

/* --- a clock that jumps --- */

/* Empties the bucket at now, jumps, and says how long nobody gets a token. */
static int64_t blocked_ms(const struct rate_limit *r, int64_t now_ms, int64_t jump_ms)
{
    int64_t full_at_ns = 0;
    (void)drain(r, now_ms, &full_at_ns);
    int64_t wait_ms = 0;
    int64_t blocked = 0;
    while (!rate_take(r, now_ms + jump_ms + blocked, &full_at_ns, &wait_ms)) {
        blocked += wait_ms;
        assert_true(blocked <= r->burst * 1000 / r->per_second + 1);
    }
    return blocked;
}

static void a_clock_that_jumps_back_blocks_no_longer_than_a_bucket_takes_to_fill(void **state)
{
    (void)state;
    static const struct rate_limit LIMITS[] = {{1, 1},       {1, 10},           {3, 7},
                                               {10, 1},      {100, 100},        {1, 1000000},
                                               {1000000, 1}, {1000000, 1000000}};
    for (size_t i = 0; i < ARRAY_LEN(LIMITS); i++) {
        const struct rate_limit *r = &LIMITS[i];
        for (int64_t back = 1; back < YEAR_2026_MS; back = back * 2 + 1)
            (void)blocked_ms(r, YEAR_2026_MS, -back);
        (void)blocked_ms(r, YEAR_2026_MS, -YEAR_2026_MS);
        (void)blocked_ms(r, YEAR_9999_MS, -YEAR_9999_MS);
    }
}

static void a_small_step_back_gives_nothing_away(void **state)
{
    (void)state;
    struct rate_limit r = {10, 10};
    for (int64_t back = 1; back <= 900; back++)
        assert_int_equal(blocked_ms(&r, YEAR_2026_MS, -back), back + 100);
}

static void a_jump_back_gives_one_token_and_then_the_rate(void **state)
{
    (void)state;
    struct rate_limit r = {10, 5};
    int64_t full_at_ns = 0;
    (void)drain(&r, YEAR_2026_MS, &full_at_ns);
    int64_t now = YEAR_2026_MS - HOUR_MS;
    assert_int_equal(rate_available(&r, now, full_at_ns), 1);
    assert_int_equal(drain(&r, now, &full_at_ns), 1);
    int64_t taken = 0;
    for (int64_t ms = 1; ms <= 10000; ms++)
        taken += takes(&r, now + ms, &full_at_ns);
    assert_int_equal(taken, 100);
}

static void a_jump_forward_gives_no_more_than_a_burst(void **state)
{
    (void)state;
    struct rate_limit r = {10, 5};
    int64_t full_at_ns = 0;
    (void)drain(&r, YEAR_2026_MS, &full_at_ns);
    int64_t later = YEAR_2026_MS + 100000 * HOUR_MS;
    assert_int_equal(drain(&r, later, &full_at_ns), 5);
    /* And back again, when the mistake is found. */
    assert_int_equal(drain(&r, YEAR_2026_MS + 1, &full_at_ns), 1);
    assert_int_equal(drain(&r, YEAR_2026_MS + 101, &full_at_ns), 1);
}

static void any_state_at_all_blocks_no_longer_than_a_bucket_takes_to_fill(void **state)
{
    (void)state;
    struct rng g = {11};
    for (int i = 0; i < 200000; i++) {
        struct rate_limit r = {1 + (int64_t)rng_below(&g, RATE_MAX),
                               1 + (int64_t)rng_below(&g, RATE_MAX)};
        if (i % 2 == 0)
            r = (struct rate_limit){1 + (int64_t)rng_below(&g, 9), 1 + (int64_t)rng_below(&g, 9)};
        int64_t now = (int64_t)rng_below(&g, (uint64_t)YEAR_9999_MS);
        int64_t full_at_ns = (int64_t)rng_next(&g);
        if (i % 3 == 0)
            full_at_ns =
                (int64_t)((uint64_t)now * 1000000 + rng_below(&g, (uint64_t)depth_ns(&r) * 3));
        int64_t available = rate_available(&r, now, full_at_ns);
        assert_in_range(available, 0, r.burst);
        int64_t wait_ms = 0;
        bool taken = rate_take(&r, now, &full_at_ns, &wait_ms);
        assert_int_equal(taken, available > 0);
        if (taken)
            continue;
        assert_in_range(wait_ms, 1, (depth_ns(&r) + 999999) / 1000000);
        assert_true(rate_take(&r, now + wait_ms, &full_at_ns, &wait_ms));
    }
}

static void lower_settings_do_not_lock_out_who_had_higher_ones(void **state)
{
    (void)state;
    struct rate_limit slow = {1, 1000000};
    struct rate_limit fast = {1000, 10};
    int64_t full_at_ns = 0;
    assert_int_equal(drain(&slow, YEAR_2026_MS, &full_at_ns), 1000000);
    assert_int_equal(drain(&fast, YEAR_2026_MS, &full_at_ns), 1);
    assert_int_equal(rate_available(&fast, YEAR_2026_MS + 10, full_at_ns), 10);
    assert_int_equal(drain(&fast, YEAR_2026_MS + 3, &full_at_ns), 3);
}

/* --- far times --- */

static void check_hour_at(int64_t start_ms)
{
    struct rate_limit r = {10, 5};
    int64_t full_at_ns = 0;
    int64_t taken = drain(&r, start_ms, &full_at_ns);
    for (int64_t ms = 1; ms <= HOUR_MS / 10; ms++)
        taken += takes(&r, start_ms + ms, &full_at_ns);
    assert_int_equal(taken, 5 + 3600);
}

static void the_rate_is_kept_across_the_end_of_64_bits_of_nanoseconds(void **state)
{
    (void)state;
    static const int64_t HALF_MS = INT64_MAX / 1000000;              /* 2262: the sign */
    static const int64_t WHOLE_MS = (int64_t)(UINT64_MAX / 1000000); /* 2554: zero */
    check_hour_at(0);
    check_hour_at(HALF_MS - 100000);
    check_hour_at(HALF_MS);
    check_hour_at(HALF_MS + 1);
    check_hour_at(WHOLE_MS - 100000);
    check_hour_at(WHOLE_MS + 1);
    check_hour_at(YEAR_9999_MS - HOUR_MS);
}

static void the_largest_bucket_in_the_last_year_does_not_overflow(void **state)
{
    (void)state;
    struct rate_limit r = {1, RATE_MAX};
    int64_t full_at_ns = 0;
    assert_int_equal(drain(&r, YEAR_9999_MS, &full_at_ns), RATE_MAX);
    int64_t wait_ms;
    assert_false(rate_take(&r, YEAR_9999_MS, &full_at_ns, &wait_ms));
    assert_int_equal(wait_ms, 1000);
    assert_int_equal(rate_available(&r, YEAR_9999_MS + INT64_C(500000) * 1000, full_at_ns), 500000);
    assert_int_equal(rate_available(&r, INT64_MAX, 0), RATE_MAX);
}

/* --- contracts --- */

static void take_with(int64_t per_second, int64_t burst, int64_t now_ms)
{
    struct rate_limit r = {per_second, burst};
    int64_t full_at_ns = 1;
    int64_t wait_ms;
    bool taken = rate_take(&r, now_ms, &full_at_ns, &wait_ms);
    (void)taken;
}

static void rate_below_zero(void)
{
    take_with(-1, 1, 0);
}

static void rate_past_its_maximum(void)
{
    take_with(RATE_MAX + 1, 1, 0);
}

static void burst_of_none(void)
{
    take_with(1, 0, 0);
}

static void burst_past_its_maximum(void)
{
    take_with(1, RATE_MAX + 1, 0);
}

static void time_before_1970(void)
{
    take_with(1, 1, -1);
}

static void settings_outside_their_range_break_the_contract(void **state)
{
    (void)state;
    assert_true(aborts(rate_below_zero));
    assert_true(aborts(rate_past_its_maximum));
    assert_true(aborts(burst_of_none));
    assert_true(aborts(burst_past_its_maximum));
    assert_true(aborts(time_before_1970));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_bucket_gives_exactly_its_burst_at_one_instant),
        cmocka_unit_test(what_is_available_is_what_can_be_taken),
        cmocka_unit_test(without_a_limit_all_are_admitted_and_nothing_is_kept),
        cmocka_unit_test(a_refusal_leaves_the_bucket_and_a_token_leaves_the_wait_untouched),
        cmocka_unit_test(a_bucket_is_full_again_when_it_says_and_no_fuller_later),
        cmocka_unit_test(after_the_wait_there_is_a_token_and_a_millisecond_before_there_is_none),
        cmocka_unit_test(a_rate_that_divides_a_second_is_kept_exactly),
        cmocka_unit_test(a_rate_that_does_not_divide_a_second_is_never_exceeded),
        cmocka_unit_test(a_greedy_caller_gets_the_burst_and_then_the_rate),
        cmocka_unit_test(a_caller_that_waits_as_asked_is_never_refused_twice),
        cmocka_unit_test(a_clock_that_jumps_back_blocks_no_longer_than_a_bucket_takes_to_fill),
        cmocka_unit_test(a_small_step_back_gives_nothing_away),
        cmocka_unit_test(a_jump_back_gives_one_token_and_then_the_rate),
        cmocka_unit_test(a_jump_forward_gives_no_more_than_a_burst),
        cmocka_unit_test(any_state_at_all_blocks_no_longer_than_a_bucket_takes_to_fill),
        cmocka_unit_test(lower_settings_do_not_lock_out_who_had_higher_ones),
        cmocka_unit_test(the_rate_is_kept_across_the_end_of_64_bits_of_nanoseconds),
        cmocka_unit_test(the_largest_bucket_in_the_last_year_does_not_overflow),
        cmocka_unit_test(settings_outside_their_range_break_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
