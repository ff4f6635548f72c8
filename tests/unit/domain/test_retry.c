/* Whether a lost attempt is made again, and when. */
#include "base/support.h"

#include "domain/retry/retry.h"

static const enum retry_jitter JITTERS[] = {JITTER_NONE, JITTER_FULL, JITTER_EQUAL,
                                            JITTER_DECORRELATED};

static struct retry_policy policy(int64_t max_attempts)
{
    return (struct retry_policy){.max_attempts = max_attempts,
                                 .backoff_ms = 100,
                                 .max_backoff_ms = 5000,
                                 .multiplier = 2,
                                 .jitter = JITTER_NONE};
}

/* --- whether --- */

static void a_step_without_a_policy_is_tried_once(void **state)
{
    (void)state;
    struct retry_policy p = policy(0);
    assert_false(retry_after_failure(&p, 1, STR("X"), true));
    p = policy(1);
    assert_false(retry_after_failure(&p, 1, STR("X"), true));
}

static void attempts_end_at_their_number(void **state)
{
    (void)state;
    static const int64_t NUMBERS[] = {2, 3, 7, 1000};
    for (size_t i = 0; i < ARRAY_LEN(NUMBERS); i++) {
        struct retry_policy p = policy(NUMBERS[i]);
        for (int64_t attempt = 1; attempt <= NUMBERS[i] + 2; attempt++)
            assert_int_equal(retry_after_failure(&p, attempt, STR("X"), true),
                             attempt < NUMBERS[i]);
    }
}

static void what_the_worker_calls_final_is_final(void **state)
{
    (void)state;
    struct retry_policy p = policy(5);
    assert_true(retry_after_failure(&p, 1, STR("X"), true));
    assert_false(retry_after_failure(&p, 1, STR("X"), false));
}

static void errors_that_are_listed_are_final(void **state)
{
    (void)state;
    struct retry_policy p = policy(5);
    struct json *codes = json_value_of(STR("[\"CARD_DECLINED\",\"GONE\"]"));
    p.non_retryable = codes;
    static const struct {
        const char *code;
        bool again;
    } ROWS[] = {{"CARD_DECLINED", false}, {"GONE", false}, {"GON", true},
                {"GONE ", true},          {"gone", true},  {"", true}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++)
        assert_int_equal(retry_after_failure(&p, 1, str_of(ROWS[i].code), true), ROWS[i].again);
    assert_true(retry_after_failure(&p, 1, STR_NONE, true));
    json_free(codes);
    codes = json_value_of(STR("[]"));
    p.non_retryable = codes;
    assert_true(retry_after_failure(&p, 1, STR("GONE"), true));
    json_free(codes);
}

/* A lease that ends is nobody's failure: it is handed out again, but not for ever. */
static void a_lease_that_ends_is_handed_out_again(void **state)
{
    (void)state;
    struct retry_policy p = policy(0);
    for (int64_t attempt = 1; attempt <= 2 * LEASES_MAX_DEFAULT; attempt++)
        assert_int_equal(retry_after_expiry(&p, attempt), attempt < LEASES_MAX_DEFAULT);
    static const int64_t NUMBERS[] = {1, 3, 50};
    for (size_t i = 0; i < ARRAY_LEN(NUMBERS); i++) {
        p = policy(NUMBERS[i]);
        for (int64_t attempt = 1; attempt <= NUMBERS[i] + 2; attempt++)
            assert_int_equal(retry_after_expiry(&p, attempt), attempt < NUMBERS[i]);
    }
}

/* --- when --- */

static void without_jitter_a_delay_grows_by_the_multiplier_up_to_its_cap(void **state)
{
    (void)state;
    static const struct {
        double multiplier;
        int64_t backoff_ms;
        int64_t max_ms;
        int64_t delays[6];
    } ROWS[] = {
        {2, 100, 5000, {100, 200, 400, 800, 1600, 3200}},
        {2, 100, 500, {100, 200, 400, 500, 500, 500}},
        {1, 100, 5000, {100, 100, 100, 100, 100, 100}},
        {1.5, 100, 5000, {100, 150, 225, 337, 506, 759}},
        {10, 1, 1000000, {1, 10, 100, 1000, 10000, 100000}},
        {100, 1000, 86400000, {1000, 100000, 10000000, 86400000, 86400000, 86400000}},
        {2, 600, 500, {500, 500, 500, 500, 500, 500}}, /* the cap wins */
        {2, 0, 500, {0, 0, 0, 0, 0, 0}},
        {2, 100, 0, {0, 0, 0, 0, 0, 0}},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct retry_policy p = policy(9);
        p.multiplier = ROWS[i].multiplier;
        p.backoff_ms = ROWS[i].backoff_ms;
        p.max_backoff_ms = ROWS[i].max_ms;
        for (int64_t attempt = 1; attempt <= 6; attempt++)
            assert_int_equal(retry_delay_ms(&p, attempt, (uint64_t)attempt * 7919),
                             ROWS[i].delays[attempt - 1]);
    }
}

struct range {
    int64_t low;
    int64_t high;
};

/* What a delay may be, said a second time. */
static struct range expected(const struct retry_policy *p, int64_t attempt)
{
    double factor = p->jitter == JITTER_DECORRELATED ? 3 : p->multiplier;
    double ceiling = (double)p->backoff_ms;
    for (int64_t i = 1; i < attempt && ceiling < 1e15; i++)
        ceiling *= factor;
    int64_t capped =
        (int64_t)(ceiling < (double)p->max_backoff_ms ? ceiling : (double)p->max_backoff_ms);
    switch (p->jitter) {
    case JITTER_NONE:
        return (struct range){capped, capped};
    case JITTER_FULL:
        return (struct range){0, capped};
    case JITTER_EQUAL:
        return (struct range){capped / 2, capped};
    case JITTER_DECORRELATED:
        break;
    }
    /* From the first delay to three times what the one before it can have been. */
    return (struct range){MIN(p->backoff_ms, p->max_backoff_ms),
                          MIN(3 * capped, p->max_backoff_ms)};
}

static void every_delay_is_within_its_jitters_range_and_fills_it(void **state)
{
    (void)state;
    enum { DRAWS = 400 };
    static const int64_t ATTEMPTS[] = {1, 2, 3, 5, 10, 64, 65, 1000};
    struct rng r = {31};
    for (size_t j = 0; j < ARRAY_LEN(JITTERS); j++) {
        for (size_t a = 0; a < ARRAY_LEN(ATTEMPTS); a++) {
            struct retry_policy p = policy(1000);
            p.jitter = JITTERS[j];
            struct range range = expected(&p, ATTEMPTS[a]);
            int64_t least = INT64_MAX;
            int64_t most = -1;
            for (int i = 0; i < DRAWS; i++) {
                int64_t delay = retry_delay_ms(&p, ATTEMPTS[a], rng_next(&r));
                least = MIN(least, delay);
                most = MAX(most, delay);
            }
            int64_t tenth = (range.high - range.low) / 10;
            if (least < range.low || most > range.high || least > range.low + tenth ||
                most < range.high - tenth)
                fail_msg("jitter %d, attempt %lld: %lld … %lld is not %lld … %lld", (int)j,
                         (long long)ATTEMPTS[a], (long long)least, (long long)most,
                         (long long)range.low, (long long)range.high);
        }
    }
}

static void random_policies_keep_their_bounds(void **state)
{
    (void)state;
    struct rng r = {32};
    for (int i = 0; i < 20000; i++) {
        struct retry_policy p = policy(1000);
        p.backoff_ms = (int64_t)rng_below(&r, rng_below(&r, 2) == 0 ? 10 : 86400001);
        p.max_backoff_ms = (int64_t)rng_below(&r, rng_below(&r, 2) == 0 ? 10 : 86400001);
        p.multiplier = 1 + (double)rng_below(&r, 9901) / 100;
        p.jitter = JITTERS[rng_below(&r, ARRAY_LEN(JITTERS))];
        int64_t attempt = 1 + (int64_t)rng_below(&r, 1000);
        uint64_t seed = rng_next(&r);
        struct range range = expected(&p, attempt);
        int64_t delay = retry_delay_ms(&p, attempt, seed);
        if (p.backoff_ms == 0)
            range = (struct range){0, 0};
        if (delay < range.low || delay > range.high)
            fail_msg("%lld is not within %lld … %lld", (long long)delay, (long long)range.low,
                     (long long)range.high);
        assert_int_equal(delay, retry_delay_ms(&p, attempt, seed)); /* the same once more */
    }
}

static const struct retry_policy *no_policy;

static void ask_for_the_delay_before_the_first_attempt(void)
{
    struct retry_policy p = policy(3);
    no_policy = &p;
    (void)retry_delay_ms(no_policy, 0, 1);
}

static void there_is_no_delay_before_the_first_attempt(void **state)
{
    (void)state;
    assert_true(aborts(ask_for_the_delay_before_the_first_attempt));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_without_a_policy_is_tried_once),
        cmocka_unit_test(attempts_end_at_their_number),
        cmocka_unit_test(what_the_worker_calls_final_is_final),
        cmocka_unit_test(errors_that_are_listed_are_final),
        cmocka_unit_test(a_lease_that_ends_is_handed_out_again),
        cmocka_unit_test(without_jitter_a_delay_grows_by_the_multiplier_up_to_its_cap),
        cmocka_unit_test(every_delay_is_within_its_jitters_range_and_fills_it),
        cmocka_unit_test(random_policies_keep_their_bounds),
        cmocka_unit_test(there_is_no_delay_before_the_first_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
