/* What the entities of a type are held to: every bound, what is shown, and how calls are retried.
 */
#include "base/support.h"

#include "base/limits.h"
#include "domain/entity/entity.h"

#define GOOD "\"queue\":\"q\",\"handler\":\"h\""

static enum err parse(const char *text, struct problem *p, struct entity_rules *ret,
                      int64_t *ret_version)
{
    struct json *body = json_value_of(str_of(text));
    problem_init(p);
    enum err e = entity_rules_parse(body, NULL, p, ret, ret_version);
    /* Text is borrowed from the body: what is looked at afterwards are numbers. */
    json_free(body);
    return e;
}

static struct entity_rules taken(const char *text)
{
    struct problem p;
    struct entity_rules rules = {0};
    int64_t version = 0;
    enum err e = parse(text, &p, &rules, &version);
    if (e != ERR_OK)
        fail_msg("%s: %s", text, p.detail);
    problem_release(&p);
    return rules;
}

static void refused(const char *text, const char *said)
{
    struct problem p;
    struct entity_rules rules = {.max_batch = -7};
    int64_t version = -7;
    if (parse(text, &p, &rules, &version) != ERR_FIELD_INVALID)
        fail_msg("%s was taken", text);
    assert_contains(p.detail, said);
    assert_int_equal(rules.max_batch, -7);
    assert_int_equal(version, -7);
    problem_release(&p);
}

/* --- reading --- */

static void queue_and_handler_are_enough(void **state)
{
    (void)state;
    struct entity_rules is = taken("{" GOOD "}");
    struct entity_rules wanted = entity_rules_default();
    assert_int_equal(is.dedup_window_ms, 259200000);
    assert_int_equal(is.dedup_max_keys, 10000);
    assert_int_equal(is.rollover_events, 200);
    assert_int_equal(is.keep_generations, 10);
    assert_int_equal(is.max_inbox, 100000);
    assert_int_equal(is.max_batch, 100);
    assert_int_equal(is.max_attempts, 0);
    assert_int_equal(is.backoff_ms, 1000);
    assert_int_equal(is.max_backoff_ms, 300000);
    assert_int_equal(is.dedup_window_ms, wanted.dedup_window_ms);
    assert_int_equal(is.max_backoff_ms, wanted.max_backoff_ms);
    assert_null(wanted.queue.ptr);
}

static void queue_and_handler_are_needed_and_are_names(void **state)
{
    (void)state;
    refused("{\"handler\":\"h\"}", "queue: is required");
    refused("{\"queue\":\"q\"}", "handler: is required");
    refused("{\"queue\":\"q\",\"handler\":\"two words\"}", "handler: ");
    refused("{\"queue\":\"\",\"handler\":\"h\"}", "queue: ");
    refused("{\"queue\":\"pawl:http\",\"handler\":\"h\"}", "pawl's own queues");
    refused("[]", "must be a JSON object");
    refused("{" GOOD ",\"colour\":1}", "\"colour\"");
    refused("{" GOOD ",\"retry\":{\"multiplier\":2}}", "\"multiplier\"");
    refused("{" GOOD ",\"retry\":5}", "retry: ");
}

static void every_number_has_its_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *member;
        int64_t min, max;
        bool in_retry;
    } ROWS[] = {
        {"version", 1, INT32_MAX, false},        {"dedup_window_s", 1, 31536000, false},
        {"dedup_max_keys", 1, 1000000, false},   {"rollover_events", 2, 1000000, false},
        {"keep_generations", 0, 1000000, false}, {"max_inbox", 1, 10000000, false},
        {"max_batch", 1, 1000, false},           {"max_attempts", 0, 1000, true},
        {"backoff_ms", 0, 86400000, true},       {"max_backoff_ms", 0, 86400000, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const int64_t TRIED[] = {ROWS[i].min - 1, ROWS[i].min, ROWS[i].max, ROWS[i].max + 1};
        for (size_t n = 0; n < ARRAY_LEN(TRIED); n++) {
            char text[160];
            (void)snprintf(text, sizeof(text),
                           ROWS[i].in_retry ? "{" GOOD ",\"retry\":{\"%s\":%lld}}"
                                            : "{" GOOD ",\"%s\":%lld}",
                           ROWS[i].member, (long long)TRIED[n]);
            if (n == 1 || n == 2)
                (void)taken(text);
            else
                refused(text, ROWS[i].member);
        }
        char text[160];
        (void)snprintf(text, sizeof(text), "{" GOOD ",\"%s\":\"5\"}", ROWS[i].member);
        refused(text, ROWS[i].member);
    }
}

static void what_is_said_counts(void **state)
{
    (void)state;
    struct problem p;
    struct entity_rules rules;
    int64_t version;
    assert_int_equal(parse("{" GOOD ",\"version\":3,\"dedup_window_s\":2,\"keep_generations\":null,"
                           "\"retry\":{\"max_attempts\":4}}",
                           &p, &rules, &version),
                     ERR_OK);
    assert_int_equal(version, 3);
    assert_int_equal(rules.dedup_window_ms, 2000);
    assert_int_equal(rules.keep_generations, -1);
    assert_int_equal(rules.max_attempts, 4);
    assert_int_equal(rules.backoff_ms, 1000);
    assert_int_equal(parse("{" GOOD "}", &p, &rules, &version), ERR_OK);
    assert_int_equal(version, -1);
    problem_release(&p);
}

/* --- showing --- */

static void what_is_shown_can_be_put_again(void **state)
{
    (void)state;
    static const char *const KEPT[] = {"null", "0", "7"};
    for (size_t i = 0; i < ARRAY_LEN(KEPT); i++) {
        char text[400];
        (void)snprintf(text, sizeof(text),
                       "{\"queue\":\"q\",\"handler\":\"h\",\"dedup_window_s\":5,"
                       "\"dedup_max_keys\":6,\"rollover_events\":7,\"keep_generations\":%s,"
                       "\"max_inbox\":8,\"max_batch\":9,\"retry\":{\"max_attempts\":1,"
                       "\"backoff_ms\":2,\"max_backoff_ms\":3}}",
                       KEPT[i]);
        struct entity_rules rules = taken(text);
        rules.queue = STR("q");
        rules.handler = STR("h");
        struct buf shown;
        buf_init(&shown, KIB);
        struct json_out o = json_out_to(&shown);
        json_open(&o, NULL, '{');
        entity_rules_render(&o, &rules);
        json_close(&o, '}');
        assert_str(buf_str(&shown), text);
        buf_release(&shown);
    }
}

/* --- ids --- */

static void an_id_is_any_text_without_control_characters(void **state)
{
    (void)state;
    static const char *const GOOD_IDS[] = {"a",     "cust-1",  "a/b?c#d%e", "two words",
                                           "\"'\\", "ünïcödé", "日本語",    "..",
                                           "*",     "{}",      "\xc2\xa0"};
    static const char *const BAD_IDS[] = {"",     "a\nb",      "\x7f",     "\x1b[2J",
                                          "\xff", "a\xc2\x80", "\xc2\x9f", "\xed\xa0\x80"};
    for (size_t i = 0; i < ARRAY_LEN(GOOD_IDS); i++) {
        if (!entity_id_ok(str_of(GOOD_IDS[i])))
            fail_msg("%s was refused", GOOD_IDS[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(BAD_IDS); i++) {
        if (entity_id_ok(str_of(BAD_IDS[i])))
            fail_msg("number %zu was taken", i);
    }
    assert_false(entity_id_ok(STR_NONE));
    assert_false(entity_id_ok(STR("a\0b")));
    char longest[ENTITY_ID_MAX + 1];
    memset(longest, 'x', sizeof(longest));
    assert_true(entity_id_ok((struct str){longest, ENTITY_ID_MAX}));
    assert_false(entity_id_ok((struct str){longest, ENTITY_ID_MAX + 1}));
}

/* --- failures --- */

static void a_call_is_tried_until_it_succeeds_unless_the_type_says_otherwise(void **state)
{
    (void)state;
    struct entity_rules rules = entity_rules_default();
    struct retry_policy policy = entity_retry_policy(&rules);
    for (int64_t attempt = 1; attempt < INT64_C(1) << 60; attempt *= 16) {
        assert_true(retry_after_failure(&policy, attempt, STR("X"), true));
        assert_true(retry_after_expiry(&policy, attempt));
        assert_false(retry_after_failure(&policy, attempt, STR("X"), false));
        int64_t delay = retry_delay_ms(&policy, attempt, (uint64_t)attempt);
        assert_true(delay >= 0 && delay <= rules.max_backoff_ms);
    }
    rules.max_attempts = 3;
    policy = entity_retry_policy(&rules);
    assert_true(retry_after_failure(&policy, 2, STR("X"), true));
    assert_false(retry_after_failure(&policy, 3, STR("X"), true));
    assert_true(retry_after_expiry(&policy, 2));
    assert_false(retry_after_expiry(&policy, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_and_handler_are_enough),
        cmocka_unit_test(queue_and_handler_are_needed_and_are_names),
        cmocka_unit_test(every_number_has_its_bounds),
        cmocka_unit_test(what_is_said_counts),
        cmocka_unit_test(what_is_shown_can_be_put_again),
        cmocka_unit_test(an_id_is_any_text_without_control_characters),
        cmocka_unit_test(a_call_is_tried_until_it_succeeds_unless_the_type_says_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
