/* Spans as OTLP's JSON. */
#include "base/support.h"

#include "base/limits.h"
#include "outbound/otlp.h"

static struct span example(void)
{
    struct span span = {
        .place = {.id = 0x00f067aa0ba902b7, .parent = 0xb7ad6b7169203331, .flags = 1},
        .kind = SPAN_SERVER,
        .name = STR("GET \"x\""),
        .begun_ns = INT64_C(1790000000123456789),
        .ended_ns = INT64_C(1790000000123456790),
    };
    memset(span.place.trace, 0xab, sizeof(span.place.trace));
    return span;
}

static void assert_span(const struct span *span, const char *expected)
{
    struct buf text;
    buf_init(&text, 8 * KIB);
    otlp_put_span(&text, span);
    assert_str(buf_str(&text), expected);
    buf_release(&text);
}

#define IDS                                                                              \
    "{\"traceId\":\"abababababababababababababababab\",\"spanId\":\"00f067aa0ba902b7\"," \
    "\"parentSpanId\":\"b7ad6b7169203331\",\"flags\":1,"
#define TIMES \
    "\"startTimeUnixNano\":\"1790000000123456789\",\"endTimeUnixNano\":\"1790000000123456790\","

static void a_span_has_hexadecimal_ids_and_times_as_text(void **state)
{
    (void)state;
    struct span span = example();
    assert_span(&span, IDS "\"name\":\"GET \\\"x\\\"\",\"kind\":2," TIMES "\"attributes\":[]}");
}

static void a_first_span_has_no_parent(void **state)
{
    (void)state;
    struct span span = example();
    span.place.parent = 0;
    assert_span(&span,
                "{\"traceId\":\"abababababababababababababababab\",\"spanId\":"
                "\"00f067aa0ba902b7\",\"flags\":1,\"name\":\"GET \\\"x\\\"\",\"kind\":2," TIMES
                "\"attributes\":[]}");
}

static void attributes_state_and_status_follow(void **state)
{
    (void)state;
    struct span span = example();
    span.tracestate = STR("foo=1");
    span.failed = true;
    span.message = STR("no");
    span_add_text(&span, "a", STR("1"));
    span_add_text(&span, "none", STR_NONE);
    span_add_number(&span, "b", -2);
    assert_span(&span, IDS "\"traceState\":\"foo=1\",\"name\":\"GET \\\"x\\\"\",\"kind\":2," TIMES
                           "\"attributes\":[{\"key\":\"a\",\"value\":{\"stringValue\":\"1\"}},"
                           "{\"key\":\"b\",\"value\":{\"intValue\":\"-2\"}}],"
                           "\"status\":{\"code\":2,\"message\":\"no\"}}");
    span.message = STR_NONE;
    span.attribute_count = 0;
    span.tracestate = STR_NONE;
    assert_span(&span, IDS "\"name\":\"GET \\\"x\\\"\",\"kind\":2," TIMES
                           "\"attributes\":[],\"status\":{\"code\":2}}");
}

static void a_span_does_not_end_before_it_begins(void **state)
{
    (void)state;
    struct span span = example();
    span.ended_ns = 5; /* the clock was set back */
    assert_span(&span, IDS "\"name\":\"GET \\\"x\\\"\",\"kind\":2,"
                           "\"startTimeUnixNano\":\"1790000000123456789\","
                           "\"endTimeUnixNano\":\"1790000000123456789\",\"attributes\":[]}");
}

static void a_request_has_the_service_and_the_list(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, 8 * KIB);
    otlp_put_request(&text, STR("{\"a\":1},{\"b\":2}"));
    assert_str(buf_str(&text),
               "{\"resourceSpans\":[{\"resource\":{\"attributes\":["
               "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"pawl\"}},"
               "{\"key\":\"service.version\",\"value\":{\"stringValue\":\"" PAWL_VERSION "\"}}]},"
               "\"scopeSpans\":[{\"scope\":{\"name\":\"pawl\"},"
               "\"spans\":[{\"a\":1},{\"b\":2}]}]}]}");
    buf_release(&text);
}

static void spans_of_a_list_are_separated_by_commas(void **state)
{
    (void)state;
    struct span span = example();
    struct buf text;
    buf_init(&text, 8 * KIB);
    otlp_put_span(&text, &span);
    size_t one = text.len;
    otlp_put_span(&text, &span);
    assert_int_equal(text.len, 2 * one + 1);
    assert_memory_equal(text.ptr + one, ",{", 2);
    buf_release(&text);
}

static void a_partial_success_says_how_many_were_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        int64_t rejected;
    } CASES[] = {
        {"{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"x\"}}", 3},
        {"{\"partialSuccess\":{\"rejectedSpans\":4}}", 4},
        {"{\"partialSuccess\":{\"rejectedSpans\":\"-4\"}}", 0},
        {"{\"partialSuccess\":{\"rejectedSpans\":-4}}", 0},
        {"{\"partialSuccess\":{\"rejectedSpans\":\"x\"}}", 0},
        {"{\"partialSuccess\":{\"rejectedSpans\":null}}", 0},
        {"{\"partialSuccess\":{}}", 0},
        {"{\"partialSuccess\":7}", 0},
        {"{}", 0},
        {"[]", 0},
        {"not JSON", 0},
        {"", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
        assert_int_equal(otlp_rejected(str_of(CASES[i].answer)), CASES[i].rejected);
}

static void only_some_statuses_may_pass(void **state)
{
    (void)state;
    for (int status = 100; status < 600; status++)
        assert_int_equal(otlp_status_may_pass(status),
                         status == 429 || status == 502 || status == 503 || status == 504);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_has_hexadecimal_ids_and_times_as_text),
        cmocka_unit_test(a_first_span_has_no_parent),
        cmocka_unit_test(attributes_state_and_status_follow),
        cmocka_unit_test(a_span_does_not_end_before_it_begins),
        cmocka_unit_test(a_request_has_the_service_and_the_list),
        cmocka_unit_test(spans_of_a_list_are_separated_by_commas),
        cmocka_unit_test(a_partial_success_says_how_many_were_rejected),
        cmocka_unit_test(only_some_statuses_may_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
