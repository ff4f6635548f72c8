/* Chunked bodies: how they are decoded, what is refused, and the limits. Each is also decoded byte
 * by byte, in random pieces and by the reference. */
#include "testing.h"

#include "base/buf.h"
#include "http/compare.h"

/* Decodes in one piece. */
static enum parse_fault fault_of(struct str bytes, enum parse_status *ret_status)
{
    size_t used;
    *ret_status = compare_chunks(bytes, 5, &used);
    struct compare_body body = compare_run_chunks(bytes, SPLIT_NOT, 0);
    free(body.out);
    return body.fault;
}

static const struct {
    const char *bytes, *data;
} DECODED[] = {
    {"0\r\n\r\n", ""},
    {"5\r\nhello\r\n0\r\n\r\n", "hello"},
    {"1\r\na\r\n2\r\nbc\r\n00\r\n\r\n", "abc"},
    {"a\r\n0123456789\r\n0\r\n\r\n", "0123456789"},
    {"A\r\n0123456789\r\n0\r\n\r\n", "0123456789"},
    {"00000000000000000005\r\nhello\r\n0\r\n\r\n", "hello"},
    {"4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n"},
    {"1;a\r\nx\r\n0;b=c\r\n\r\n", "x"},
    {"1;a=b;c\r\nx\r\n0\r\n\r\n", "x"},
    {"1 ; a = b ; c\r\nx\r\n0\r\n\r\n", "x"},
    {"1\t;\ta\t=\tb\t;\tc=d\r\nx\r\n0\r\n\r\n", "x"},
    {"1  ;a  = b\r\nx\r\n0\r\n\r\n", "x"},
    {"1;a=\"\"\r\nx\r\n0\r\n\r\n", "x"},
    {"1;a= \"b;\\\"c \\\x80\" ;d\r\nx\r\n0\r\n\r\n", "x"},
    {"1;a=\"b\";c=\"d\"\r\nx\r\n0\r\n\r\n", "x"},
    {"1\r\nx\r\n0\r\nA: b\r\nC:\t\x80 \r\n\r\n", "x"},
    {"1\r\nx\r\n0\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n", "x"},
};

static void chunks_are_put_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(DECODED); i++) {
        size_t used;
        char text[160];
        (void)snprintf(text, sizeof(text), "%sGET", DECODED[i].bytes); /* and the next request */
        assert_int_equal(compare_chunks(str_of(text), i, &used), PARSE_DONE);
        assert_int_equal(used, strlen(DECODED[i].bytes));
        struct chunks c;
        size_t data;
        chunks_begin(&c);
        assert_int_equal(chunks_parse(&c, text, strlen(text), &used, &data), PARSE_DONE);
        assert_true(str_is((struct str){text, data}, DECODED[i].data));
        assert_int_equal(c.total, data);
    }
}

static void each_prefix_of_a_body_waits_for_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(DECODED); i++) {
        for (size_t len = 1; len < strlen(DECODED[i].bytes); len++) {
            enum parse_status got;
            (void)fault_of((struct str){DECODED[i].bytes, len}, &got);
            assert_int_equal(got, PARSE_MORE);
        }
    }
}

/* `why` at the last byte; what comes before it waits for more. */
static const struct {
    struct str bytes;
    enum parse_fault why;
} REFUSED[] = {
    {BYTES("\r"), PARSE_CHUNK_SIZE},
    {BYTES(";"), PARSE_CHUNK_SIZE},
    {BYTES(" "), PARSE_CHUNK_SIZE},
    {BYTES("-"), PARSE_CHUNK_SIZE},
    {BYTES("+"), PARSE_CHUNK_SIZE},
    {BYTES("g"), PARSE_CHUNK_SIZE},
    {BYTES("\0"), PARSE_CHUNK_SIZE},
    {BYTES("0x"), PARSE_CHUNK_SIZE},
    {BYTES("5_"), PARSE_CHUNK_SIZE},
    {BYTES("5\n"), PARSE_CHUNK_SIZE},
    {BYTES("5\rx"), PARSE_CHUNK_SIZE},
    {BYTES("5\r\r"), PARSE_CHUNK_SIZE},
    {BYTES("5 \r"), PARSE_CHUNK_EXTENSION},
    {BYTES("5 \n"), PARSE_CHUNK_EXTENSION},
    {BYTES("5 5"), PARSE_CHUNK_EXTENSION},
    {BYTES("5 ="), PARSE_CHUNK_EXTENSION},
    {BYTES("5;\r"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;\n"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;;"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;="), PARSE_CHUNK_EXTENSION},
    {BYTES("5; \r"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a\n"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a\0"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a\""), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a\rx"), PARSE_CHUNK_SIZE},
    {BYTES("5;a \r"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a b"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a=\r"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a=;"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a=b\n"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a=b\""), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a=b c"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a=b ="), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a=\"\r"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a=\"\n"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a=\"\0"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a=\"\\\r"), PARSE_CHUNK_EXTENSION},
    {BYTES("5;a=\"\"x"), PARSE_CHUNK_EXTENSION},
    {BYTES("5\r\nhellox"), PARSE_CHUNK_END},
    {BYTES("5\r\nhello\n"), PARSE_CHUNK_END},
    {BYTES("5\r\nhello\rx"), PARSE_CHUNK_END},
    {BYTES("5\r\nhello\r\n\r"), PARSE_CHUNK_SIZE},
    {BYTES("0\r\n "), PARSE_FOLDED},
    {BYTES("0\r\n\n"), PARSE_FIELD_NAME},
    {BYTES("0\r\n:"), PARSE_FIELD_NAME},
    {BYTES("0\r\na "), PARSE_FIELD_NAME},
    {BYTES("0\r\na\r"), PARSE_FIELD_NAME},
    {BYTES("0\r\na:\n"), PARSE_FIELD_VALUE},
    {BYTES("0\r\na:\0"), PARSE_FIELD_VALUE},
    {BYTES("0\r\na: b\rx"), PARSE_LINE_END},
    {BYTES("0\r\na: b\r\n\t"), PARSE_FOLDED},
    {BYTES("0\r\n\rx"), PARSE_LINE_END},
    {BYTES("1000001\r"), PARSE_CHUNK_LARGE},
    {BYTES("fffffff;"), PARSE_CHUNK_LARGE},
    {BYTES("00000000000000000000000001000001\r"), PARSE_CHUNK_LARGE},
    {BYTES("1\r\nx\r\n1000000\r"), PARSE_CHUNK_LARGE},
    {BYTES("ffffffffffffffff\r"), PARSE_CHUNK_LARGE},
    {BYTES("0ffffffffffffffff0"), PARSE_CHUNK_SIZE},
};

static void what_is_malformed_is_refused_at_the_byte_that_makes_it_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
        struct str bytes = REFUSED[i].bytes;
        enum parse_status before = PARSE_MORE, got;
        if (bytes.len > 1)
            (void)fault_of((struct str){bytes.ptr, bytes.len - 1}, &before);
        enum parse_fault fault = fault_of(bytes, &got);
        if (before != PARSE_MORE || got != PARSE_REFUSED || fault != REFUSED[i].why)
            fail_msg("case %zu: %.*s: %s", i, STR_ARG(bytes), parse_fault_detail(fault));
    }
}

/* --- limits --- */

/* The fault of a text: `times` of a prefix, a filling of x, and a suffix. */
static enum parse_fault fault_of_filled(size_t times, const char *prefix, size_t filling,
                                        const char *suffix, const char *end)
{
    struct buf b;
    buf_init(&b, MIB);
    for (size_t i = 0; i < times; i++) {
        buf_put(&b, str_of(prefix));
        for (size_t n = 0; n < filling; n++)
            buf_put_char(&b, 'x');
        buf_put(&b, str_of(suffix));
    }
    buf_put(&b, str_of(end));
    assert_true(buf_ok(&b));
    enum parse_status got;
    enum parse_fault fault = fault_of(buf_str(&b), &got);
    assert_int_equal(got, fault == PARSE_FINE ? PARSE_DONE : PARSE_REFUSED);
    buf_release(&b);
    return fault;
}

static void a_chunk_line_has_a_longest_length(void **state)
{
    (void)state;
    size_t longest = HTTP_CHUNK_LINE_MAX - strlen("1;\r\n");
    static const char END[] = "0\r\n\r\n";
    assert_int_equal(fault_of_filled(1, "1;", longest, "\r\n.\r\n", END), PARSE_FINE);
    assert_int_equal(fault_of_filled(1, "1;", longest + 1, "\r\n.\r\n", END),
                     PARSE_CHUNK_LINE_LONG);
    assert_int_equal(fault_of_filled(1, "1;", 100000, "\r\n.\r\n", END), PARSE_CHUNK_LINE_LONG);
    assert_int_equal(fault_of_filled(HTTP_CHUNK_LINE_MAX, "0", 0, "", "1\r\n"),
                     PARSE_CHUNK_LINE_LONG);
}

static void the_extensions_of_a_body_have_a_longest_length(void **state)
{
    (void)state;
    size_t times = HTTP_CHUNK_EXTENSIONS_MAX / 64; /* each as long as ";x…x" */
    static const char END[] = "0\r\n\r\n";
    assert_int_equal(fault_of_filled(times, "1;", 63, "\r\n.\r\n", END), PARSE_FINE);
    assert_int_equal(fault_of_filled(times, "1;", 63, "\r\n.\r\n", "0;a\r\n\r\n"),
                     PARSE_CHUNK_LINE_LONG);
}

static void trailers_have_a_longest_length(void **state)
{
    (void)state;
    size_t longest = HTTP_TRAILERS_MAX - strlen("a:\r\n\r\n");
    assert_int_equal(fault_of_filled(1, "0\r\na:", longest, "\r\n", "\r\n"), PARSE_FINE);
    assert_int_equal(fault_of_filled(1, "0\r\na:", longest + 1, "\r\n", "\r\n"),
                     PARSE_TRAILERS_LONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_put_together),
        cmocka_unit_test(each_prefix_of_a_body_waits_for_more),
        cmocka_unit_test(what_is_malformed_is_refused_at_the_byte_that_makes_it_so),
        cmocka_unit_test(a_chunk_line_has_a_longest_length),
        cmocka_unit_test(the_extensions_of_a_body_have_a_longest_length),
        cmocka_unit_test(trailers_have_a_longest_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
