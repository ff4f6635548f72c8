/* The head of a request: what it says, how it may be written, and its limits. Each request is also
 * parsed byte by byte, in random pieces and by the reference. */
#include "testing.h"

#include "base/buf.h"
#include "http/compare.h"

static enum parse_status parse(struct str bytes, struct head *h)
{
    return compare_head(bytes, 7, h);
}

static void is_text(const char *bytes, struct slice slice, const char *wanted)
{
    struct str got = slice_str(bytes, slice);
    if (!str_is(got, wanted))
        fail_msg("%.*s, not %s", STR_ARG(got), wanted);
}

static void a_request_is_taken_apart(void **state)
{
    (void)state;
    static const char TEXT[] = "POST /a/b%20c?x=1&y=?2 HTTP/1.1\r\n"
                               "Host: localhost:7295\r\n"
                               "X-Empty:\r\n"
                               "X-Blanks: \t a b\tc \t\r\n"
                               "content-LENGTH:  12\r\n"
                               "Expect: 100-Continue\r\n"
                               "\r\n{}";
    struct head h;
    assert_int_equal(parse(str_of(TEXT), &h), PARSE_DONE);
    is_text(TEXT, h.method, "POST");
    is_text(TEXT, h.path, "/a/b%20c");
    is_text(TEXT, h.query, "x=1&y=?2");
    is_text(TEXT, h.host, "localhost:7295");
    assert_int_equal(h.size, sizeof(TEXT) - 1 - 2);
    assert_int_equal(h.field_count, 5);
    is_text(TEXT, h.fields[1].name, "X-Empty");
    is_text(TEXT, h.fields[1].value, "");
    is_text(TEXT, h.fields[2].value, "a b\tc");
    assert_true(h.has_length && h.length == 12 && !h.chunked);
    assert_true(h.expects_100 && h.keep_alive && !h.is_1_0);
}

static void a_target_may_be_a_path_a_url_or_an_asterisk(void **state)
{
    (void)state;
    static const struct {
        const char *line, *path, *query, *host;
    } CASES[] = {
        {"GET / HTTP/1.1", "/", "", "field"},
        {"GET /? HTTP/1.1", "/", "", "field"},
        {"GET //a HTTP/1.1", "//a", "", "field"},
        {"GET /[]^`{|}@:!$&'()*+,;=~ HTTP/1.1", "/[]^`{|}@:!$&'()*+,;=~", "", "field"},
        {"OPTIONS * HTTP/1.1", "*", "", "field"},
        {"GET http://target/a?b HTTP/1.1", "/a", "b", "target"},
        {"GET HTTPS://target:1/ HTTP/1.1", "/", "", "target:1"},
        {"GET http://[::1]?b HTTP/1.1", "", "b", "[::1]"},
        {"OPTIONS http://target HTTP/1.1", "", "", "target"},
        {"BREW /pot HTTP/1.2", "/pot", "", "field"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char text[128];
        (void)snprintf(text, sizeof(text), "%s\r\nHost: field\r\n\r\n", CASES[i].line);
        struct head h;
        assert_int_equal(parse(str_of(text), &h), PARSE_DONE);
        is_text(text, h.path, CASES[i].path);
        is_text(text, h.query, CASES[i].query);
        is_text(text, h.host, CASES[i].host);
    }
}

static void the_connection_is_kept_as_version_and_options_say(void **state)
{
    (void)state;
    static const struct {
        const char *rest;
        bool keeps;
    } CASES[] = {
        {"1.1\r\nHost: a\r\n\r\n", true},
        {"1.0\r\n\r\n", false},
        {"1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
        {"1.1\r\nHost: a\r\nConnection: a, CLOSE ,b\r\n\r\n", false},
        {"1.1\r\nHost: a\r\nConnection: a\r\nConnection: close\r\n\r\n", false},
        {"1.1\r\nHost: a\r\nConnection: closed, xclose\r\n\r\n", true},
        {"1.1\r\nHost: a\r\nConnection:\r\n\r\n", true},
        {"1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
        {"1.0\r\nConnection: keep-alive, close\r\n\r\n", false},
        {"1.9\r\nHost: a\r\n\r\n", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char text[128];
        (void)snprintf(text, sizeof(text), "GET / HTTP/%s", CASES[i].rest);
        struct head h;
        assert_int_equal(parse(str_of(text), &h), PARSE_DONE);
        assert_int_equal(h.keep_alive, CASES[i].keeps);
    }
}

static void names_of_the_same_length_as_those_that_count_mean_nothing(void **state)
{
    (void)state;
    struct head h;
    assert_int_equal(
        parse(STR("GET / HTTP/1.1\r\nHost: a\r\nTost: \r\nExpekt: x\r\nKonnection: close\r\n"
                  "Kontent-Length: x\r\nTransfer_Encoding: x\r\n\r\n"),
              &h),
        PARSE_DONE);
    assert_true(h.keep_alive && !h.has_length && !h.chunked && !h.expects_100);
}

static void http_1_0_has_no_expectations(void **state)
{
    (void)state;
    struct head h;
    assert_int_equal(parse(STR("GET / HTTP/1.0\r\nExpect: anything\r\n\r\n"), &h), PARSE_DONE);
    assert_false(h.expects_100);
}

static void each_prefix_of_a_request_waits_for_more(void **state)
{
    (void)state;
    static const char TEXT[] = "\r\nPUT http://a/%41?b HTTP/1.1\r\nHost: a\r\nA-b:\t c \r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    struct head h;
    for (size_t len = 1; len < sizeof(TEXT) - 1; len++)
        assert_int_equal(parse((struct str){TEXT, len}, &h), PARSE_MORE);
    assert_int_equal(parse(str_of(TEXT), &h), PARSE_DONE);
    assert_true(h.chunked);
}

/* --- what is refused --- */

#define HOST "Host: a\r\n"
#define LINE "GET / HTTP/1.1\r\n"

/* `why` at the last byte; every prefix waits for more. */
static const struct refused {
    struct str bytes;
    enum parse_fault why;
} REFUSED[] = {
    {BYTES("\n"), PARSE_REQUEST_LINE},
    {BYTES(" "), PARSE_REQUEST_LINE},
    {BYTES("\0"), PARSE_REQUEST_LINE},
    {BYTES("\x16"), PARSE_REQUEST_LINE}, /* TLS */
    {BYTES("\x80"), PARSE_REQUEST_LINE},
    {BYTES("\rG"), PARSE_LINE_END},
    {BYTES("\r\n\r\n\r\n\r\n\r"), PARSE_EMPTY_LINES},
    {BYTES("GET\t"), PARSE_REQUEST_LINE},
    {BYTES("GET\r"), PARSE_REQUEST_LINE},
    {BYTES("G\0"), PARSE_REQUEST_LINE},
    {BYTES("("), PARSE_REQUEST_LINE},
    {BYTES("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG"), PARSE_METHOD_LONG},
    {BYTES("GET  "), PARSE_REQUEST_LINE},
    {BYTES("GET \r"), PARSE_REQUEST_LINE},
    {BYTES("GET /\r"), PARSE_REQUEST_LINE},
    {BYTES("GET /\n"), PARSE_REQUEST_LINE},
    {BYTES("GET /\t"), PARSE_TARGET},
    {BYTES("GET /\0"), PARSE_TARGET},
    {BYTES("GET /\x7f"), PARSE_TARGET},
    {BYTES("GET /\xc3"), PARSE_TARGET},
    {BYTES("GET /a#"), PARSE_TARGET},
    {BYTES("GET /\""), PARSE_TARGET},
    {BYTES("GET /<"), PARSE_TARGET},
    {BYTES("GET /a>"), PARSE_TARGET},
    {BYTES("GET /\\"), PARSE_TARGET},
    {BYTES("GET /% "), PARSE_TARGET},
    {BYTES("GET /%g"), PARSE_TARGET},
    {BYTES("GET /%4g"), PARSE_TARGET},
    {BYTES("GET /  "), PARSE_REQUEST_LINE},
    {BYTES("GET / h"), PARSE_REQUEST_LINE},
    {BYTES("GET / HTTP/x"), PARSE_REQUEST_LINE},
    {BYTES("GET / HTTP/1,"), PARSE_REQUEST_LINE},
    {BYTES("GET / HTTP/1.x"), PARSE_REQUEST_LINE},
    {BYTES("GET / HTTP/11"), PARSE_REQUEST_LINE},
    {BYTES("GET / HTTP/1.11"), PARSE_REQUEST_LINE},
    {BYTES("GET / HTTP/1.1 "), PARSE_REQUEST_LINE},
    {BYTES("GET / HTTP/1.1\n"), PARSE_REQUEST_LINE},
    {BYTES("GET / HTTP/1.1\rH"), PARSE_LINE_END},
    {BYTES("GET / HTTP/0.9\r\n"), PARSE_VERSION},
    {BYTES("GET / HTTP/2.0\r\n"), PARSE_VERSION},
    {BYTES("PRI * HTTP/2.0\r\n"), PARSE_VERSION},
    {BYTES("GET * HTTP/1.1\r\n"), PARSE_TARGET_FORM},
    {BYTES("OPTIONS ** HTTP/1.1\r\n"), PARSE_TARGET_FORM},
    {BYTES("GET a HTTP/1.1\r\n"), PARSE_TARGET_FORM},
    {BYTES("GET a:80 HTTP/1.1\r\n"), PARSE_TARGET_FORM},
    {BYTES("GET ?a HTTP/1.1\r\n"), PARSE_TARGET_FORM},
    {BYTES("GET http:/a HTTP/1.1\r\n"), PARSE_TARGET_FORM},
    {BYTES("GET ftp://a/ HTTP/1.1\r\n"), PARSE_TARGET_FORM},
    {BYTES("GET httpx://a/ HTTP/1.1\r\n"), PARSE_TARGET_FORM},
    {BYTES("GET http:// HTTP/1.1\r\n"), PARSE_HOST},
    {BYTES("GET http:///a HTTP/1.1\r\n"), PARSE_HOST},
    {BYTES("GET http://u@a/ HTTP/1.1\r\n"), PARSE_HOST},
    {BYTES("GET https://a:b/ HTTP/1.1\r\n"), PARSE_HOST},
    {BYTES("CONNECT a:80 HTTP/1.1\r\n"), PARSE_CONNECT},
    {BYTES("CONNECT / HTTP/1.1\r\n"), PARSE_CONNECT},
    {BYTES(LINE " "), PARSE_FOLDED},
    {BYTES(LINE "\t"), PARSE_FOLDED},
    {BYTES(LINE "\n"), PARSE_LINE_END},
    {BYTES(LINE "\rx"), PARSE_LINE_END},
    {BYTES(LINE ":"), PARSE_FIELD_NAME},
    {BYTES(LINE "\0"), PARSE_FIELD_NAME},
    {BYTES(LINE "a "), PARSE_FIELD_NAME},
    {BYTES(LINE "a\t"), PARSE_FIELD_NAME},
    {BYTES(LINE "a\r"), PARSE_FIELD_NAME},
    {BYTES(LINE "a\n"), PARSE_FIELD_NAME},
    {BYTES(LINE "a\0"), PARSE_FIELD_NAME},
    {BYTES(LINE "a/"), PARSE_FIELD_NAME},
    {BYTES(LINE "a["), PARSE_FIELD_NAME},
    {BYTES(LINE "a\x80"), PARSE_FIELD_NAME},
    {BYTES(LINE "a:\n"), PARSE_LINE_END},
    {BYTES(LINE "a: b\n"), PARSE_LINE_END},
    {BYTES(LINE "a: b\rc"), PARSE_LINE_END},
    {BYTES(LINE "a: \r\r"), PARSE_LINE_END},
    {BYTES(LINE "a: b\0"), PARSE_FIELD_VALUE},
    {BYTES(LINE "a: \x01"), PARSE_FIELD_VALUE},
    {BYTES(LINE "a: \x7f"), PARSE_FIELD_VALUE},
    {BYTES(LINE "a: b\x1b"), PARSE_FIELD_VALUE},
    {BYTES(LINE HOST " "), PARSE_FOLDED},
    {BYTES(LINE "\r\n"), PARSE_HOSTS},
    {BYTES("GET http://a/ HTTP/1.1\r\n\r\n"), PARSE_HOSTS},
    {BYTES(LINE HOST "host: a\r\n"), PARSE_HOSTS},
    {BYTES(LINE "Host:\r\n"), PARSE_HOST},
    {BYTES(LINE "Host: a@b/..\r\n"), PARSE_HOST},
    {BYTES(LINE "Host: a b\r\n"), PARSE_HOST},
    {BYTES(LINE "Host: a, b\r\n"), PARSE_HOST},
    {BYTES(LINE "Expect: 200-ok\r\n"), PARSE_EXPECT},
    {BYTES(LINE "Expect: 100-continue, x\r\n"), PARSE_EXPECT},
    {BYTES(LINE "Expect:\r\n"), PARSE_EXPECT},
};

static void what_is_malformed_is_refused_at_the_byte_that_makes_it_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
        struct head h;
        struct str bytes = REFUSED[i].bytes;
        enum parse_status before = PARSE_MORE;
        if (bytes.len > 1)
            before = parse((struct str){bytes.ptr, bytes.len - 1}, &h);
        enum parse_status got = parse(bytes, &h);
        if (before != PARSE_MORE || got != PARSE_REFUSED || h.fault != REFUSED[i].why)
            fail_msg("case %zu: %.*s: %s", i, STR_ARG(bytes), parse_fault_detail(h.fault));
    }
}

static void each_fault_has_a_code_and_a_reason(void **state)
{
    (void)state;
    for (enum parse_fault fault = PARSE_FINE + 1; fault < PARSE_FAULT_COUNT; fault++) {
        int status = err_http_status(parse_fault_err(fault));
        assert_true((status >= 400 && status < 500) || status == 505);
        assert_true(strlen(parse_fault_detail(fault)) > 10);
    }
    assert_int_equal(parse_fault_err(PARSE_FINE), ERR_OK);
    assert_string_equal(parse_fault_detail(PARSE_FINE), "");
}

/* --- limits --- */

static void put_many(struct buf *b, char c, size_t count)
{
    while (count-- > 0)
        buf_put_char(b, c);
}

/* A request line, and lines of fields, of these lengths with their ends; 0: none. */
static enum parse_fault fault_of_lengths(size_t request_line, const size_t *lines, size_t count)
{
    struct buf b;
    struct head h;
    buf_init(&b, MIB);
    buf_put(&b, STR("GET /"));
    put_many(&b, 'a', request_line - strlen("GET / HTTP/1.1\r\n"));
    buf_put(&b, STR(" HTTP/1.1\r\nHost: a\r\n"));
    for (size_t i = 0; i < count; i++) {
        buf_put(&b, STR("a: "));
        put_many(&b, 'b', lines[i] - strlen("a: \r\n"));
        buf_put(&b, STR("\r\n"));
    }
    buf_put(&b, STR("\r\n"));
    assert_true(buf_ok(&b));
    enum parse_status got = parse(buf_str(&b), &h);
    assert_true(got == PARSE_DONE || got == PARSE_REFUSED);
    buf_release(&b);
    return h.fault;
}

static void lines_and_heads_have_a_longest_length(void **state)
{
    (void)state;
    size_t whole[] = {HTTP_LINE_MAX, 0};
    assert_int_equal(fault_of_lengths(HTTP_LINE_MAX, NULL, 0), PARSE_FINE);
    assert_int_equal(fault_of_lengths(HTTP_LINE_MAX + 1, NULL, 0), PARSE_TARGET_LONG);
    assert_int_equal(fault_of_lengths(100 * KIB, NULL, 0), PARSE_TARGET_LONG);
    assert_int_equal(fault_of_lengths(16, whole, 1), PARSE_FINE);
    whole[0]++;
    assert_int_equal(fault_of_lengths(16, whole, 1), PARSE_FIELD_LONG);
    size_t rest = HTTP_HEAD_MAX - 2 * KIB - strlen("Host: a\r\n\r\n") - HTTP_LINE_MAX;
    size_t both[] = {HTTP_LINE_MAX, rest};
    assert_int_equal(fault_of_lengths(2 * KIB, both, 2), PARSE_FINE);
    both[1]++;
    assert_int_equal(fault_of_lengths(2 * KIB, both, 2), PARSE_HEAD_LONG);
    both[1]--;
    assert_int_equal(fault_of_lengths(2 * KIB + 2, both, 2), PARSE_HEAD_LONG);
}

static void a_head_has_a_largest_number_of_fields(void **state)
{
    (void)state;
    for (size_t count = HTTP_FIELDS_MAX - 1; count <= HTTP_FIELDS_MAX; count++) {
        struct buf b;
        struct head h;
        buf_init(&b, MIB);
        buf_put(&b, STR(LINE HOST));
        for (size_t i = 0; i < count; i++)
            buf_put(&b, STR("a: b\r\n"));
        buf_put(&b, STR("\r\n"));
        bool fits = count < HTTP_FIELDS_MAX;
        assert_int_equal(parse(buf_str(&b), &h), fits ? PARSE_DONE : PARSE_REFUSED);
        assert_int_equal(h.fault, fits ? PARSE_FINE : PARSE_FIELDS);
        buf_release(&b);
    }
}

static void some_empty_lines_before_a_request_are_skipped(void **state)
{
    (void)state;
    struct head h;
    assert_int_equal(parse(STR("\r\n\r\n\r\n\r\n" LINE HOST "\r\n"), &h), PARSE_DONE);
    assert_int_equal(h.method.at, 8);
}

static void requests_follow_each_other(void **state)
{
    (void)state;
    assert_int_equal(
        compare_connection(STR(LINE HOST "\r\n"
                                         "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"
                                         "POST / HTTP/1.1\r\n" HOST
                                         "Transfer-Encoding: chunked\r\n\r\n"
                                         "5\r\nhello\r\n0\r\n\r\n" LINE HOST "\r\n" LINE),
                           3),
        4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_taken_apart),
        cmocka_unit_test(a_target_may_be_a_path_a_url_or_an_asterisk),
        cmocka_unit_test(the_connection_is_kept_as_version_and_options_say),
        cmocka_unit_test(names_of_the_same_length_as_those_that_count_mean_nothing),
        cmocka_unit_test(http_1_0_has_no_expectations),
        cmocka_unit_test(each_prefix_of_a_request_waits_for_more),
        cmocka_unit_test(what_is_malformed_is_refused_at_the_byte_that_makes_it_so),
        cmocka_unit_test(each_fault_has_a_code_and_a_reason),
        cmocka_unit_test(lines_and_heads_have_a_longest_length),
        cmocka_unit_test(a_head_has_a_largest_number_of_fields),
        cmocka_unit_test(some_empty_lines_before_a_request_are_skipped),
        cmocka_unit_test(requests_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
