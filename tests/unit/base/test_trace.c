/* W3C trace context, by the rules of its specification and the cases of its own test suite. */
#include "support.h"

#include "base/trace/trace.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define PARENT "00-" TRACE "-" SPAN "-01"

/* --- traceparent --- */

static void a_traceparent_is_valid_as_a_whole_or_not_at_all(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
    } CASES[] = {
        {PARENT, true},
        {"00-" TRACE "-" SPAN "-00", true},
        {"00-" TRACE "-" SPAN "-ff", true},
        {"cc-" TRACE "-" SPAN "-01", true},
        {"cc-" TRACE "-" SPAN "-01-what-the-future-will-be-like", true},
        {"cc-" TRACE "-" SPAN "-01-", true},
        {"cc-" TRACE "-" SPAN "-01.what-the-future-will-be-like", false},
        {"cc-" TRACE "-" SPAN "-011", false},
        {PARENT ".", false},
        {PARENT "-what-the-future-will-be-like", false},
        {"ff-" TRACE "-" SPAN "-01", false},
        {".0-" TRACE "-" SPAN "-01", false},
        {"0.-" TRACE "-" SPAN "-01", false},
        {"000-" TRACE "-" SPAN "-01", false},
        {"0-" TRACE "-" SPAN "-01", false},
        {"CC-" TRACE "-" SPAN "-01", false},
        {"00-00000000000000000000000000000000-" SPAN "-01", false},
        {"00-.af7651916cd43dd8448eb211c80319c-" SPAN "-01", false},
        {"00-0af7651916cd43dd8448eb211c80319.-" SPAN "-01", false},
        {"00-0AF7651916cd43dd8448eb211c80319c-" SPAN "-01", false},
        {"00-0" TRACE "-" SPAN "-01", false},
        {"00-af7651916cd43dd8448eb211c80319c-" SPAN "-01", false},
        {"00-" TRACE "-0000000000000000-01", false},
        {"00-" TRACE "-.7ad6b7169203331-01", false},
        {"00-" TRACE "-b7ad6b716920333.-01", false},
        {"00-" TRACE "-0" SPAN "-01", false},
        {"00-" TRACE "-7ad6b7169203331-01", false},
        {"00-" TRACE "-" SPAN "-.0", false},
        {"00-" TRACE "-" SPAN "-0.", false},
        {"00-" TRACE "-" SPAN "-001", false},
        {"00-" TRACE "-" SPAN "-1", false},
        {"00-" TRACE "-" SPAN, false},
        {"", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        if (traceparent_ok(str_of(CASES[i].text)) != CASES[i].valid)
            fail_msg("%s", CASES[i].text);
    }
    assert_false(traceparent_ok(STR_NONE));
}

/* --- tracestate --- */

#define X10(c) c c c c c c c c c c
#define X100(c) X10(c) X10(c) X10(c) X10(c) X10(c) X10(c) X10(c) X10(c) X10(c) X10(c)
#define X240(c) X100(c) X100(c) X10(c) X10(c) X10(c) X10(c)
#define X256(c) X240(c) X10(c) c c c c c c
#define VALUES                                                                 \
    " !\"#$%&'()*+-./0123456789:;<>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefg" \
    "hijklmnopqrstuvwxyz{|}~"

static void a_tracestate_is_valid_as_a_whole_or_not_at_all(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
    } CASES[] = {
        {"foo=1", true},
        {"foo=1,bar=2", true},
        {"foo=1,foo=1", true}, /* the suite wants duplicates kept */
        {"foo=1,foo=2", true},
        {"foo=1,", true},
        {",foo=1", true},
        {"foo=1,,bar=2", true},
        {"foo=1 \t , \t bar=2, \t baz=3", true},
        {"\t foo=1 \t", true},
        {"abcdefghijklmnopqrstuvwxyz0123456789_-*/=" VALUES, true},
        {"abcdefghijklmnopqrstuvwxyz0123456789_-*/@a-z0-9_-*/=" VALUES, true},
        {"0tenant@system=1", true},
        {X256("z") "=1", true},
        {X256("z") "z=1", false},
        {X240("t") "t@" X10("v") "vvvv=1", true},
        {X240("t") "tt@v=1", false},
        {"t@" X10("v") "vvvvv=1", false},
        {"foo=" X256("v"), true},
        {"foo=" X256("v") "v", false},
        {"", false},
        {",", false},
        {" \t", false},
        {"foo", false},
        {"=1", false},
        {"foo=", false},
        {"foo= ", false},
        {"foo=1,bar", false},
        {"foo=,bar=3", false},
        {"foo=bar=baz", false},
        {"foo =1", false},
        {"FOO=1", false},
        {"foo.bar=1", false},
        {"0foo=1", false},
        {"foo@=1,bar=2", false},
        {"@foo=1,bar=2", false},
        {"foo@@bar=1,bar=2", false},
        {"foo@bar@baz=1,bar=2", false},
        {"foo@0bar=1", false},
        {"foo=1\tx", false},
        {"foo=\x7f", false},
        {"foo=\xc3\xa9", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        if (tracestate_ok(str_of(CASES[i].text)) != CASES[i].valid)
            fail_msg("%s", CASES[i].text);
    }
    assert_false(tracestate_ok(STR_NONE));
}

static void a_tracestate_has_at_most_32_members(void **state)
{
    (void)state;
    char text[33 * 8 + 1] = "";
    for (int i = 0; i < 32; i++)
        (void)snprintf(text + strlen(text), 9, "k%02d=123,", i);
    assert_true(tracestate_ok(str_of(text)));
    memcpy(text + strlen(text), "last=1", 7);
    assert_false(tracestate_ok(str_of(text)));
}

/* --- spans --- */

static struct uuid id_of(const char *text)
{
    struct uuid id;
    bool ok = uuid_parse(str_of(text), &id);
    assert_true(ok);
    return id;
}

static void assert_written(const struct trace_span *span, const char *expected)
{
    char text[TRACEPARENT_LEN + 1];
    trace_write(span, text);
    assert_string_equal(text, expected);
    assert_true(traceparent_ok(str_of(text)));
}

static void a_span_below_a_caller_is_in_its_trace(void **state)
{
    (void)state;
    struct uuid own = id_of("01a1dddc-23f5-795c-8000-0077dc244979");
    struct trace_span span = trace_span_below(STR(PARENT), own, 0x1122334455667788);
    assert_written(&span, "00-" TRACE "-1122334455667788-01");
    assert_true(span.parent == 0xb7ad6b7169203331);
    struct trace_span child = trace_span_child(&span, 1);
    assert_written(&child, "00-" TRACE "-0000000000000001-01");
    assert_true(child.parent == span.id);
}

static void a_later_version_is_continued_as_version_00(void **state)
{
    (void)state;
    struct trace_span span =
        trace_span_below(STR("cc-" TRACE "-" SPAN "-01-more"), (struct uuid){{0}}, 7);
    assert_written(&span, "00-" TRACE "-0000000000000007-01");
}

static void only_known_flags_are_passed_on(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {{"00", "00"}, {"01", "01"}, {"02", "02"},
                                           {"03", "03"}, {"fc", "00"}, {"ff", "03"}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char given[TRACEPARENT_LEN + 1], expected[TRACEPARENT_LEN + 1];
        (void)snprintf(given, sizeof(given), "00-" TRACE "-" SPAN "-%s", CASES[i][0]);
        (void)snprintf(expected, sizeof(expected), "00-" TRACE "-00000000000000ab-%s", CASES[i][1]);
        struct trace_span span = trace_span_below(str_of(given), (struct uuid){{0}}, 0xab);
        assert_written(&span, expected);
    }
}

static void a_span_below_nothing_begins_a_trace(void **state)
{
    (void)state;
    static const char *const GIVEN[] = {NULL, "", "garbage", "ff-" TRACE "-" SPAN "-01"};
    for (size_t i = 0; i < ARRAY_LEN(GIVEN); i++) {
        struct trace_span span = trace_span_below(
            str_of(GIVEN[i]), id_of("01a1dddc-23f5-795c-8000-0077dc244979"), 0xabcdef);
        assert_written(&span, "00-01a1dddc23f5795c80000077dc244979-0000000000abcdef-01");
        assert_true(span.parent == 0);
    }
}

static void span_ids_are_stable_and_differ(void **state)
{
    (void)state;
    struct uuid a = id_of("01a1dddc-23f5-795c-8000-0077dc244979");
    struct uuid b = id_of("01a1dddc-23f5-795c-8000-0077dc24497a");
    assert_true(trace_span_id(a, 1) == trace_span_id(a, 1));
    uint64_t seen[] = {trace_span_id(a, 0), trace_span_id(a, 1), trace_span_id(a, 2),
                       trace_span_id(b, 0), trace_span_id(b, 1), trace_span_id(b, 2)};
    for (size_t i = 0; i < ARRAY_LEN(seen); i++) {
        assert_true(seen[i] != 0);
        for (size_t k = 0; k < i; k++)
            assert_true(seen[i] != seen[k]);
    }
    assert_true(trace_span_id((struct uuid){{0}}, 0) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_traceparent_is_valid_as_a_whole_or_not_at_all),
        cmocka_unit_test(a_tracestate_is_valid_as_a_whole_or_not_at_all),
        cmocka_unit_test(a_tracestate_has_at_most_32_members),
        cmocka_unit_test(a_span_below_a_caller_is_in_its_trace),
        cmocka_unit_test(a_later_version_is_continued_as_version_00),
        cmocka_unit_test(only_known_flags_are_passed_on),
        cmocka_unit_test(a_span_below_nothing_begins_a_trace),
        cmocka_unit_test(span_ids_are_stable_and_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
