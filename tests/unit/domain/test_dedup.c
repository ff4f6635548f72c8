/* Windows of known keys, and how well they fit. */
#include "base/support.h"

#include "domain/entity/dedup.h"

static struct sha256 request(const char *name, const char *payload)
{
    struct problem p;
    problem_init(&p);
    struct sha256 hash = {{0}};
    struct json *json = json_value_of_tree(payload != NULL ? parsed(payload) : NULL);
    assert_int_equal(dedup_request(str_of(name), json, &p, &hash), ERR_OK);
    json_free(json);
    problem_release(&p);
    return hash;
}

static bool same(struct sha256 a, struct sha256 b)
{
    return sha256_eq(&a, &b);
}

static void signals_are_the_same_however_they_are_written(void **state)
{
    (void)state;
    struct sha256 first = request("add", "{\"a\":1,\"b\":[1,2]}");
    assert_true(same(first, request("add", "{ \"b\" : [1, 2], \"a\" : 1 }")));
    assert_false(same(first, request("add", "{\"a\":1,\"b\":[2,1]}")));
    assert_false(same(first, request("sub", "{\"a\":1,\"b\":[1,2]}")));
    assert_true(same(request("add", NULL), request("add", "null")));
    /* The name ends where it ends. */
    assert_false(same(request("add1", "2"), request("add", "12")));
}

static const struct dedup_limits LIMITS = {.window_ms = 1000, .max_keys = 3};

static void a_key_is_known_up_to_the_age_and_the_count(void **state)
{
    (void)state;
    struct dedup_window w = {.first = 5, .last = 7, .emptied = 5, .forgotten = 1};
    assert_true(dedup_knows(&w, &LIMITS, 5, 0, 1000));
    assert_false(dedup_knows(&w, &LIMITS, 5, 0, 1001));
    assert_false(dedup_knows(&w, &LIMITS, 4, 1000, 1000));
    w.last = 8; /* more than fits, with lower limits than before */
    assert_false(dedup_knows(&w, &LIMITS, 5, 1000, 1000));
    assert_true(dedup_knows(&w, &LIMITS, 6, 1000, 1000));
}

static void a_clock_that_goes_back_makes_no_key_older(void **state)
{
    (void)state;
    struct dedup_window w = {.first = 1, .last = 2, .emptied = 1, .forgotten = 1};
    assert_int_equal(dedup_age_ms(5000, 10), 0);
    assert_true(dedup_knows(&w, &LIMITS, 1, 5000, 10));
    assert_int_equal(dedup_oldest_leaves(&w, &LIMITS, 5000, 10), DEDUP_STAYS);
}

static void the_oldest_leaves_by_age_or_by_count(void **state)
{
    (void)state;
    struct dedup_window w = {.first = 1, .last = 3, .emptied = 1, .forgotten = 1};
    assert_true(dedup_window_is_sound(&w));
    assert_int_equal(dedup_oldest_leaves(&w, &LIMITS, 0, 1000), DEDUP_STAYS);
    assert_int_equal(dedup_oldest_leaves(&w, &LIMITS, 0, 1001), DEDUP_TOO_OLD);
    w.last = 4;
    assert_int_equal(dedup_oldest_leaves(&w, &LIMITS, 0, 0), DEDUP_TOO_MANY);
    assert_int_equal(dedup_oldest_leaves(&w, &LIMITS, 0, 1001), DEDUP_TOO_OLD);
}

static void a_hash_is_kept_for_a_further_window(void **state)
{
    (void)state;
    struct dedup_window w = {.first = 4, .last = 3, .emptied = 4, .forgotten = 1};
    assert_false(dedup_oldest_is_forgotten(&w, &LIMITS, 0, 2000));
    assert_true(dedup_oldest_is_forgotten(&w, &LIMITS, 0, 2001));
    w.first = w.emptied = 5;
    w.last = 4;
    assert_true(dedup_oldest_is_forgotten(&w, &LIMITS, 0, 0));
}

static void sweeping_waits_until_it_is_worth_it(void **state)
{
    (void)state;
    struct dedup_window w = dedup_window_new();
    assert_true(dedup_window_is_sound(&w));
    assert_false(dedup_sweep_is_due(&w, &LIMITS, 0));
    w = (struct dedup_window){.first = 64, .last = 64, .emptied = 1, .forgotten = 1};
    assert_false(dedup_sweep_is_due(&w, &LIMITS, 1));
    assert_true(dedup_sweep_is_due(&w, &LIMITS, 9));
    w.first = 65;
    assert_true(dedup_sweep_is_due(&w, &LIMITS, 1));
    w = (struct dedup_window){.first = 68, .last = 68, .emptied = 68, .forgotten = 1};
    assert_false(dedup_sweep_is_due(&w, &LIMITS, 1));
    w.forgotten = 0;
    assert_true(dedup_sweep_is_due(&w, &LIMITS, 1));
}

static void bounds_out_of_order_are_not_sound(void **state)
{
    (void)state;
    struct dedup_window wrong[] = {
        {.first = 1, .last = 0, .emptied = 2, .forgotten = 1},
        {.first = 3, .last = 1, .emptied = 1, .forgotten = 1},
        {.first = 3, .last = 3, .emptied = 2, .forgotten = 3},
        {.first = 1, .last = 1, .emptied = 1, .forgotten = 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(dedup_window_is_sound(&wrong[i]));
}

/* --- how late duplicates come --- */

static void every_age_has_its_bucket(void **state)
{
    (void)state;
    assert_int_equal(dedup_bucket_of(0), DEDUP_1_S);
    int64_t before = 0;
    for (enum dedup_bucket b = 0; b < DEDUP_OLDER; b++) {
        int64_t up_to = dedup_bucket_up_to_s(b) * 1000;
        assert_true(up_to > before);
        assert_int_equal(dedup_bucket_of(before + 1), b);
        assert_int_equal(dedup_bucket_of(up_to), b);
        assert_int_equal(dedup_bucket_of(up_to + 1), b + 1);
        before = up_to;
    }
    assert_int_equal(dedup_bucket_of(INT64_MAX), DEDUP_OLDER);
    assert_int_equal(dedup_bucket_up_to_s(DEDUP_OLDER), -1);
    assert_string_equal(dedup_bucket_name(DEDUP_1_S), "≤ 1 s");
    assert_string_equal(dedup_bucket_name(DEDUP_OLDER), "> 30 d");
}

static void shares_count_duplicates_in_time_and_late(void **state)
{
    (void)state;
    struct dedup_counts c = {.keyed = 7};
    assert_int_equal(dedup_share_came_by(&c, 50), DEDUP_BUCKETS);
    c.duplicates[DEDUP_1_S] = 50;
    c.duplicates[DEDUP_1_H] = 48;
    c.late[DEDUP_7_D] = 2;
    assert_int_equal(dedup_duplicates(&c), 98);
    assert_int_equal(dedup_late(&c), 2);
    assert_int_equal(dedup_share_came_by(&c, 50), DEDUP_1_S);
    assert_int_equal(dedup_share_came_by(&c, 51), DEDUP_1_H);
    assert_int_equal(dedup_share_came_by(&c, 98), DEDUP_1_H);
    assert_int_equal(dedup_share_came_by(&c, 99), DEDUP_7_D);
    assert_int_equal(dedup_share_came_by(&c, 100), DEDUP_7_D);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_are_the_same_however_they_are_written),
        cmocka_unit_test(a_key_is_known_up_to_the_age_and_the_count),
        cmocka_unit_test(a_clock_that_goes_back_makes_no_key_older),
        cmocka_unit_test(the_oldest_leaves_by_age_or_by_count),
        cmocka_unit_test(a_hash_is_kept_for_a_further_window),
        cmocka_unit_test(sweeping_waits_until_it_is_worth_it),
        cmocka_unit_test(bounds_out_of_order_are_not_sound),
        cmocka_unit_test(every_age_has_its_bucket),
        cmocka_unit_test(shares_count_duplicates_in_time_and_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
