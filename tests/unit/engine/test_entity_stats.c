/* How the window of a type's keys fits the duplicates that come, as operators see it. */
#include "engine/fixture.h"

#include "domain/entity/dedup.h"

enum { DAY_MS = 86400 * 1000 };

static void put_type(struct fixture *fixture, int64_t window_s, int64_t max_keys)
{
    struct put_entity_type_input in = {
        .type = STR("meter"), .version = -1, .rules = entity_rules_default()};
    in.rules.queue = STR("meters");
    in.rules.handler = STR("read");
    in.rules.dedup_window_ms = window_s * 1000;
    in.rules.dedup_max_keys = max_keys;
    struct call c;
    call_init(&c, fixture, &UC_PUT_ENTITY_TYPE);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
}

static bool is_duplicate(struct fixture *fixture, const char *key)
{
    struct problem p;
    problem_init(&p);
    struct signal_entity_input in = {.type = STR("meter"),
                                     .id = STR("m-1"),
                                     .name = STR("reading"),
                                     .payload = STR("1"),
                                     .dedup_key = str_of(key)};
    struct json *payload = json_value_of_tree(parsed("1"));
    assert_int_equal(dedup_request(in.name, payload, &p, &in.request), ERR_OK);
    struct call c;
    call_init(&c, fixture, &UC_SIGNAL_ENTITY);
    c.op.input = &in;
    must_perform(&c);
    json_t *body = parsed_str(buf_str(&c.op.answer.body));
    bool duplicate = json_is_true(json_object_get(body, "duplicate"));
    json_decref(body);
    call_release(&c);
    json_free(payload);
    problem_release(&p);
    return duplicate;
}

/* Once what was counted is written. The caller owns it. */
static json_t *stats_of(struct fixture *fixture)
{
    fixture_pass_ms(fixture, IDEM_STATS_FLUSH_MS);
    settle(fixture);
    struct entity_type_input in = {.type = STR("meter")};
    struct call c;
    call_init(&c, fixture, &UC_ENTITY_STATS);
    c.op.input = &in;
    must_perform(&c);
    json_t *stats = parsed_str(buf_str(&c.op.answer.body));
    call_release(&c);
    return stats;
}

static int64_t number_in(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static int64_t in_bucket(const json_t *stats, enum dedup_bucket bucket, const char *name)
{
    return number_in(json_array_get(json_object_get(stats, "histogram"), bucket), name);
}

static const char *share(const json_t *stats, const char *which)
{
    const json_t *share = json_object_get(json_object_get(stats, "duplicates_came_within"), which);
    return json_string_value(json_object_get(share, "age"));
}

static void a_type_without_signals_has_empty_statistics(void **state)
{
    struct fixture *fixture = *state;
    put_type(fixture, 600, 50);
    json_t *stats = stats_of(fixture);
    assert_true(json_is_null(json_object_get(stats, "since")));
    assert_int_equal(number_in(stats, "window_s"), 600);
    assert_int_equal(number_in(stats, "max_keys"), 50);
    assert_int_equal(number_in(stats, "signals_with_key"), 0);
    assert_true(json_number_value(json_object_get(stats, "late_share")) == 0.0);
    assert_null(share(stats, "p50"));
    assert_int_equal(json_array_size(json_object_get(stats, "histogram")), DEDUP_BUCKETS);
    assert_true(json_is_null(json_object_get(
        json_array_get(json_object_get(stats, "histogram"), DEDUP_OLDER), "up_to_s")));
    json_decref(stats);
}

static void a_type_that_is_not_there_has_none(void **state)
{
    struct entity_type_input in = {.type = STR("meter")};
    struct call c;
    call_init(&c, *state, &UC_ENTITY_STATS);
    c.op.input = &in;
    assert_int_equal(perform(&c), ERR_ENTITY_TYPE_NOT_FOUND);
    call_release(&c);
}

static void duplicates_show_by_their_age_and_late_ones_apart(void **state)
{
    struct fixture *fixture = *state;
    put_type(fixture, DEDUP_WINDOW_S_DEFAULT, 100);
    assert_false(is_duplicate(fixture, "a"));
    for (int i = 0; i < 3; i++)
        assert_true(is_duplicate(fixture, "a"));
    fixture_pass_ms(fixture, 2 * DAY_MS);
    assert_true(is_duplicate(fixture, "a"));
    fixture_pass_ms(fixture, 2 * DAY_MS);
    assert_false(is_duplicate(fixture, "a"));
    json_t *stats = stats_of(fixture);
    assert_int_equal(number_in(stats, "signals_with_key"), 6);
    assert_int_equal(number_in(stats, "duplicates"), 4);
    assert_int_equal(number_in(stats, "late_duplicates"), 1);
    assert_true(json_number_value(json_object_get(stats, "late_share")) == 0.2);
    assert_int_equal(number_in(stats, "evicted_by_age"), 1);
    assert_int_equal(number_in(stats, "evicted_by_count"), 0);
    assert_int_equal(in_bucket(stats, DEDUP_1_S, "duplicates"), 3);
    assert_int_equal(in_bucket(stats, DEDUP_3_D, "duplicates"), 1);
    assert_int_equal(in_bucket(stats, DEDUP_7_D, "late"), 1);
    assert_int_equal(in_bucket(stats, DEDUP_7_D, "up_to_s"), 7 * 86400);
    assert_string_equal(share(stats, "p50"), "≤ 1 s");
    assert_string_equal(share(stats, "p99"), "≤ 7 d");
    assert_string_equal(share(stats, "max"), "≤ 7 d");
    json_decref(stats);
}

static void a_window_of_too_few_keys_shows(void **state)
{
    struct fixture *fixture = *state;
    put_type(fixture, DEDUP_WINDOW_S_DEFAULT, 2);
    static const char *const KEYS[] = {"a", "b", "c", "a"};
    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++)
        assert_false(is_duplicate(fixture, KEYS[i]));
    json_t *stats = stats_of(fixture);
    assert_int_equal(number_in(stats, "evicted_by_count"), 2);
    assert_int_equal(number_in(stats, "late_duplicates"), 1);
    assert_int_equal(in_bucket(stats, DEDUP_1_S, "late"), 1);
    json_decref(stats);
}

static void counts_outlive_a_restart(void **state)
{
    struct fixture *fixture = *state;
    put_type(fixture, DEDUP_WINDOW_S_DEFAULT, 100);
    assert_false(is_duplicate(fixture, "a"));
    json_decref(stats_of(fixture));
    fixture_stop(fixture);
    fixture_start(fixture, 0);
    assert_true(is_duplicate(fixture, "a"));
    json_t *stats = stats_of(fixture);
    assert_int_equal(number_in(stats, "signals_with_key"), 2);
    assert_int_equal(number_in(stats, "duplicates"), 1);
    assert_true(json_is_string(json_object_get(stats, "since")));
    json_decref(stats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(a_type_without_signals_has_empty_statistics),
        fixture_test(a_type_that_is_not_there_has_none),
        fixture_test(duplicates_show_by_their_age_and_late_ones_apart),
        fixture_test(a_window_of_too_few_keys_shows),
        fixture_test(counts_outlive_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
