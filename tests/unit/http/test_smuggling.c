/* Requests that two readers could take apart differently: the body of one hides another request.
 * Each must be refused, so that its connection is closed and nothing after it is read. */
#include "testing.h"

#include "http/compare.h"

#define POST "POST / HTTP/1.1\r\nHost: a\r\n"
#define CL "Content-Length: 5\r\n"
#define TE "Transfer-Encoding: chunked\r\n"
#define INNER "GET /admin HTTP/1.1\r\nHost: a\r\n\r\n"

static const struct {
    const char *name;
    struct str bytes;
    enum parse_fault why;
} CASES[] = {
    {"length, then chunked", BYTES(POST CL TE "\r\n0\r\n\r\n" INNER), PARSE_LENGTH_AND_CODED},
    {"chunked, then length", BYTES(POST TE CL "\r\n0\r\n\r\n" INNER), PARSE_LENGTH_AND_CODED},
    {"length 0 and chunked", BYTES(POST "Content-Length: 0\r\n" TE "\r\n0\r\n\r\n" INNER),
     PARSE_LENGTH_AND_CODED},
    {"two lengths", BYTES(POST CL "Content-Length: 6\r\n\r\nhello" INNER), PARSE_LENGTHS},
    {"two equal lengths", BYTES(POST CL CL "\r\nhello" INNER), PARSE_LENGTHS},
    {"a list of lengths", BYTES(POST "Content-Length: 5, 5\r\n\r\nhello" INNER), PARSE_LENGTH},
    {"an empty length", BYTES(POST "Content-Length:\r\n\r\nhello" INNER), PARSE_LENGTH},
    {"a length with a plus", BYTES(POST "Content-Length: +5\r\n\r\nhello" INNER), PARSE_LENGTH},
    {"a negative length", BYTES(POST "Content-Length: -5\r\n\r\nhello" INNER), PARSE_LENGTH},
    {"a hexadecimal length", BYTES(POST "Content-Length: 0x5\r\n\r\nhello" INNER), PARSE_LENGTH},
    {"a length with a fraction", BYTES(POST "Content-Length: 5.0\r\n\r\nhello" INNER),
     PARSE_LENGTH},
    {"a length with an exponent", BYTES(POST "Content-Length: 5e0\r\n\r\nhello" INNER),
     PARSE_LENGTH},
    {"a length in two words", BYTES(POST "Content-Length: 5 5\r\n\r\nhello" INNER), PARSE_LENGTH},
    {"a quoted length", BYTES(POST "Content-Length: \"5\"\r\n\r\nhello" INNER), PARSE_LENGTH},
    {"a length with an underscore", BYTES(POST "Content-Length: 1_0\r\n\r\nhello" INNER),
     PARSE_LENGTH},
    {"full-width digits", BYTES(POST "Content-Length: \xef\xbc\x95\r\n\r\nhello" INNER),
     PARSE_LENGTH},
    {"a length past 64 bits", BYTES(POST "Content-Length: 18446744073709551621\r\n\r\nhello" INNER),
     PARSE_LENGTH},
    {"a length far past 64 bits",
     BYTES(POST "Content-Length: 99999999999999999999999\r\n\r\nhello" INNER), PARSE_LENGTH},
    {"the largest length of 64 bits",
     BYTES(POST "Content-Length: 0018446744073709551615\r\n\r\nhello" INNER), PARSE_LENGTH_LARGE},
    {"the first length past it",
     BYTES(POST "Content-Length: 18446744073709551616\r\n\r\nhello" INNER), PARSE_LENGTH},
    {"a length past 32 bits", BYTES(POST "Content-Length: 4294967301\r\n\r\nhello" INNER),
     PARSE_LENGTH_LARGE},
    {"a length with a NUL", BYTES(POST "Content-Length: 5\0\r\n\r\nhello" INNER),
     PARSE_FIELD_VALUE},
    {"a length after a vertical tab",
     BYTES(POST "Content-Length:\x0b"
                "5\r\n\r\nhello" INNER),
     PARSE_FIELD_VALUE},
    {"a blank before the colon", BYTES(POST "Content-Length : 5\r\n\r\nhello" INNER),
     PARSE_FIELD_NAME},
    {"a tab before the colon", BYTES(POST "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n"),
     PARSE_FIELD_NAME},
    {"chunked twice", BYTES(POST TE TE "\r\n0\r\n\r\n" INNER), PARSE_ENCODING},
    {"chunked, chunked", BYTES(POST "Transfer-Encoding: chunked, chunked\r\n\r\n"), PARSE_ENCODING},
    {"gzip, chunked", BYTES(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), PARSE_ENCODING},
    {"chunked, gzip", BYTES(POST "Transfer-Encoding: chunked, gzip\r\n\r\n"), PARSE_ENCODING},
    {"identity", BYTES(POST "Transfer-Encoding: identity\r\n\r\n"), PARSE_ENCODING},
    {"chunked and a comma", BYTES(POST "Transfer-Encoding: chunked,\r\n\r\n"), PARSE_ENCODING},
    {"a comma and chunked", BYTES(POST "Transfer-Encoding: ,chunked\r\n\r\n"), PARSE_ENCODING},
    {"xchunked", BYTES(POST "Transfer-Encoding: xchunked\r\n\r\n"), PARSE_ENCODING},
    {"chunkedx", BYTES(POST "Transfer-Encoding: chunkedx\r\n\r\n"), PARSE_ENCODING},
    {"chunk", BYTES(POST "Transfer-Encoding: chunk\r\n\r\n"), PARSE_ENCODING},
    {"quoted chunked", BYTES(POST "Transfer-Encoding: \"chunked\"\r\n\r\n"), PARSE_ENCODING},
    {"chunked with a parameter", BYTES(POST "Transfer-Encoding: chunked;q=1\r\n\r\n"),
     PARSE_ENCODING},
    {"chunked after a colon", BYTES(POST "Transfer-Encoding: : chunked\r\n\r\n"), PARSE_ENCODING},
    {"an empty encoding", BYTES(POST "Transfer-Encoding:\r\n\r\n"), PARSE_ENCODING},
    {"chunked after a NUL", BYTES(POST "Transfer-Encoding: \0chunked\r\n\r\n"), PARSE_FIELD_VALUE},
    {"chunked after a backspace", BYTES(POST "Transfer-Encoding: \bchunked\r\n\r\n"),
     PARSE_FIELD_VALUE},
    {"chunked after a lone CR", BYTES(POST "Transfer-Encoding: \rchunked\r\n\r\n"), PARSE_LINE_END},
    {"chunked after a lone LF", BYTES(POST "Transfer-Encoding: \nchunked\r\n\r\n"), PARSE_LINE_END},
    {"chunked after a byte above 127",
     BYTES(POST "Transfer-Encoding: \xa0"
                "chunked\r\n\r\n"),
     PARSE_ENCODING},
    {"chunked in HTTP/1.0", BYTES("POST / HTTP/1.0\r\n" TE "\r\n0\r\n\r\n" INNER),
     PARSE_ENCODING_1_0},
    {"a folded name, FINDINGS C6", BYTES(POST "X-Ten: t9\r\n ant-ID: x\r\n\r\n"), PARSE_FOLDED},
    {"a folded encoding", BYTES(POST "Transfer: chunked\r\n -Encoding: x\r\n\r\n"), PARSE_FOLDED},
    {"a folded length", BYTES(POST "Content-Length:\r\n 5\r\n\r\nhello" INNER), PARSE_LENGTH},
    {"a length before a folded line", BYTES(POST CL " 5\r\n\r\nhello" INNER), PARSE_FOLDED},
    {"a folded encoding's value", BYTES(POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
     PARSE_ENCODING},
    {"a folded key", BYTES(POST "Idempotency-Key: a\r\n\tb\r\n\r\n"), PARSE_FOLDED},
    {"a blank line's blank", BYTES(POST " \r\n\r\n"), PARSE_FOLDED},
    {"blanks before the first field", BYTES("POST / HTTP/1.1\r\n " TE "Host: a\r\n\r\n"),
     PARSE_FOLDED},
    {"an empty name", BYTES(POST ": x\r\n\r\n" INNER), PARSE_FIELD_NAME},
    {"no colon", BYTES(POST "Transfer-Encoding\r\n\r\n"), PARSE_FIELD_NAME},
    {"a line of one word", BYTES(POST "x\r\n\r\n"), PARSE_FIELD_NAME},
    {"a name with a NUL", BYTES(POST "Content-Length\0: 5\r\n\r\nhello"), PARSE_FIELD_NAME},
    {"a name with a quote", BYTES(POST "\"Content-Length\": 5\r\n\r\nhello"), PARSE_FIELD_NAME},
    {"a lone LF ends a field",
     BYTES("POST / HTTP/1.1\r\nHost: a\nTransfer-Encoding: chunked\r\n\r\n"), PARSE_LINE_END},
    {"a lone LF ends the head", BYTES(POST CL "\nhello" INNER), PARSE_LINE_END},
    {"a lone LF ends the request line", BYTES("POST / HTTP/1.1\nHost: a\r\n\r\n"),
     PARSE_REQUEST_LINE},
    {"a lone CR ends a field",
     BYTES("POST / HTTP/1.1\r\nHost: a\rTransfer-Encoding: chunked\r\n\r\n"), PARSE_LINE_END},
    {"CR CR LF", BYTES(POST CL "\r\r\nhello"), PARSE_LINE_END},
    {"two hosts", BYTES(POST "Host: b\r\n\r\n"), PARSE_HOSTS},
    {"two equal hosts", BYTES(POST "Host: a\r\n\r\n"), PARSE_HOSTS},
    {"no host", BYTES("GET / HTTP/1.1\r\n\r\n"), PARSE_HOSTS},
    {"a host with a user", BYTES("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"), PARSE_HOST},
    {"a host with a path", BYTES("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), PARSE_HOST},
    {"two hosts in one", BYTES("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"), PARSE_HOST},
    {"a second request line", BYTES("GET / HTTP/1.1\r\nGET /admin HTTP/1.1\r\n\r\n"),
     PARSE_FIELD_NAME},
    {"a target with a line's end", BYTES("GET /\r\nHost: a\r\n\r\n"), PARSE_REQUEST_LINE},
    {"HTTP/0.9", BYTES("GET /admin\r\n"), PARSE_REQUEST_LINE},
};

/* The same for the body: a chunk whose end two readers see in different places. */
static const struct {
    const char *name;
    struct str bytes;
    enum parse_fault why;
} BODIES[] = {
    {"a lone LF after the size", BYTES("5\nhello\r\n0\r\n\r\n"), PARSE_CHUNK_SIZE},
    {"a lone LF after the data", BYTES("5\r\nhello\n0\r\n\r\n"), PARSE_CHUNK_END},
    {"a lone LF in an extension", BYTES("5;a\nGET / HTTP/1.1\r\nhello\r\n"), PARSE_CHUNK_EXTENSION},
    {"a lone CR in an extension", BYTES("5;a\rb\r\nhello\r\n"), PARSE_CHUNK_SIZE},
    {"a NUL in an extension", BYTES("5;a\0b\r\nhello\r\n"), PARSE_CHUNK_EXTENSION},
    {"a quoted line's end", BYTES("5;a=\"\r\n0\r\n\r\n\"\r\n"), PARSE_CHUNK_EXTENSION},
    {"an extension without a name", BYTES("5;\r\nhello\r\n"), PARSE_CHUNK_EXTENSION},
    {"blanks after the size", BYTES("5 \r\nhello\r\n"), PARSE_CHUNK_EXTENSION},
    {"blanks before the size", BYTES(" 5\r\nhello\r\n"), PARSE_CHUNK_SIZE},
    {"a size with 0x", BYTES("0x5\r\nhello\r\n"), PARSE_CHUNK_SIZE},
    {"a size with a sign", BYTES("+5\r\nhello\r\n"), PARSE_CHUNK_SIZE},
    {"a negative size", BYTES("-1\r\nhello\r\n"), PARSE_CHUNK_SIZE},
    {"a size with an underscore", BYTES("1_0\r\nhello\r\n"), PARSE_CHUNK_SIZE},
    {"a size past 64 bits", BYTES("10000000000000005\r\nhello\r\n"), PARSE_CHUNK_SIZE},
    {"a size past 32 bits", BYTES("100000005\r\nhello\r\n"), PARSE_CHUNK_LARGE},
    {"an empty size", BYTES("\r\nhello\r\n"), PARSE_CHUNK_SIZE},
    {"more data than said", BYTES("5\r\nhello!\r\n0\r\n\r\n"), PARSE_CHUNK_END},
    {"no end after the data", BYTES("5\r\nhello0\r\n\r\n"), PARSE_CHUNK_END},
    {"CR CR LF after the size", BYTES("5\r\r\nhello\r\n"), PARSE_CHUNK_SIZE},
    {"a folded trailer", BYTES("0\r\na: b\r\n c\r\n\r\n"), PARSE_FOLDED},
    {"a trailer without a name", BYTES("0\r\n: b\r\n\r\n"), PARSE_FIELD_NAME},
    {"a trailer with a NUL", BYTES("0\r\na: \0\r\n\r\n"), PARSE_FIELD_VALUE},
    {"a trailer with a lone LF", BYTES("0\r\na: b\n\r\n"), PARSE_FIELD_VALUE},
    {"a request for a trailer", BYTES("0\r\nGET / HTTP/1.1\r\n\r\n"), PARSE_FIELD_NAME},
};

static void a_request_that_could_be_read_two_ways_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct head h;
        enum parse_status got = compare_head(CASES[i].bytes, i, &h);
        if (got != PARSE_REFUSED || h.fault != CASES[i].why)
            fail_msg("%s: %d, %s", CASES[i].name, (int)got, parse_fault_detail(h.fault));
    }
}

static void a_body_that_could_be_read_two_ways_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(BODIES); i++) {
        size_t used;
        enum parse_status got = compare_chunks(BODIES[i].bytes, i, &used);
        struct compare_body body = compare_run_chunks(BODIES[i].bytes, SPLIT_NOT, 0);
        free(body.out);
        if (got != PARSE_REFUSED || body.fault != BODIES[i].why)
            fail_msg("%s: %d, %s", BODIES[i].name, (int)got, parse_fault_detail(body.fault));
    }
}

static void blanks_around_a_value_do_not_hide_it(void **state)
{
    (void)state;
    struct head h;
    assert_int_equal(compare_head(STR(POST "Content-Length: \t005 \t\r\n\r\n"), 1, &h), PARSE_DONE);
    assert_true(h.has_length && h.length == 5);
    assert_int_equal(compare_head(STR(POST "TRANSFER-encoding:\tChunked \r\n\r\n"), 1, &h),
                     PARSE_DONE);
    assert_true(h.chunked);
}

static void a_target_with_a_host_overrules_the_host_field(void **state)
{
    (void)state;
    static const char TEXT[] = "GET http://inside/ HTTP/1.1\r\nHost: outside\r\n\r\n";
    struct head h;
    assert_int_equal(compare_head(str_of(TEXT), 1, &h), PARSE_DONE);
    assert_true(str_is(slice_str(TEXT, h.host), "inside")); /* RFC 9112 3.2.2 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_that_could_be_read_two_ways_is_refused),
        cmocka_unit_test(a_body_that_could_be_read_two_ways_is_refused),
        cmocka_unit_test(blanks_around_a_value_do_not_hide_it),
        cmocka_unit_test(a_target_with_a_host_overrules_the_host_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
