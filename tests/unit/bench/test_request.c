/* Requests of the load generator: rendering, changing places, and the order of a mix. */
#include "testing.h"

#include "bench/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct request_values NONE = {0};

static void expect_bytes(const struct request *request, const char *wanted)
{
    assert_int_equal(request->len, strlen(wanted));
    assert_memory_equal(request->bytes, wanted, request->len);
}

static void a_request_without_a_body_is_a_head(void **state)
{
    (void)state;
    struct request_spec spec = {.method = "GET", .path = "/x{c}", .headers = {"A: b"}};
    spec.header_count = 1;
    struct request request = request_render(&spec, 80, 7, &NONE);
    expect_bytes(&request, "GET /x7 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nA: b\r\n\r\n");
    request_free(&request);
}

static void a_body_has_its_length_and_a_type(void **state)
{
    (void)state;
    struct request_spec spec = {.method = "POST", .path = "/", .body = "{\"c\":{c}}"};
    struct request request = request_render(&spec, 80, 1234, &NONE);
    expect_bytes(&request,
                 "POST / HTTP/1.1\r\nHost: 127.0.0.1:80\r\nContent-Type: application/json\r\n"
                 "Content-Length:      10\r\n\r\n{\"c\":1234}");
    request_free(&request);
}

static void numbers_go_round_with_leading_zeros(void **state)
{
    (void)state;
    struct request_spec spec = {.method = "GET", .path = "/{n100}/{n7}/{nope}"};
    struct request request = request_render(&spec, 80, 0, &NONE);
    request_number(&request, 203, 0, &NONE);
    expect_bytes(&request, "GET /03/0/{nope} HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n");
    request_number(&request, 99, 0, &NONE);
    expect_bytes(&request, "GET /99/1/{nope} HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n");
    request_free(&request);
}

static void connections_may_share_a_number(void **state)
{
    (void)state;
    struct request_spec spec = {.method = "GET", .path = "/{c}/{c64}/{c0}/{c6"};
    struct request request = request_render(&spec, 80, 130, &NONE);
    expect_bytes(&request, "GET /130/2/{c0}/{c6 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n");
    request_free(&request);
}

static void unique_digits_are_those_of_number_and_seed(void **state)
{
    (void)state;
    struct request_spec spec = {.method = "GET", .path = "{u}", .headers = {"{u}"}};
    spec.header_count = 1;
    struct request request = request_render(&spec, 80, 0, &NONE);
    char first[16], second[16];
    request_number(&request, 5, 100, &NONE);
    memcpy(first, request.bytes + 4, sizeof first);
    assert_memory_equal(request.bytes + request.slots[1].at, first, sizeof first);
    request_number(&request, 6, 100, &NONE);
    memcpy(second, request.bytes + 4, sizeof second);
    assert_memory_not_equal(first, second, sizeof first);
    request_number(&request, 5, 100, &NONE);
    assert_memory_equal(request.bytes + 4, first, sizeof first);
    request_free(&request);
}

static void each_request_has_its_line_of_the_values(void **state)
{
    (void)state;
    char path[] = "/tmp/pawl-values-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "one\ntwo\nsix\n", 12), 12);
    close(fd);
    struct request_values values = request_values_read(path);
    unlink(path);
    assert_int_equal(values.count, 3);
    struct request_spec spec = {.method = "GET", .path = "/{v}"};
    struct request request = request_render(&spec, 80, 0, &values);
    static const char *const WANTED[] = {"GET /one ", "GET /two ", "GET /six "};
    for (uint64_t i = 0; i < 3; i++) {
        request_number(&request, i, 0, &values);
        assert_memory_equal(request.bytes, WANTED[i], 9);
    }
    request_free(&request);
    free(values.text);
}

static void a_mix_is_even_and_keeps_its_weights(void **state)
{
    (void)state;
    static const struct request_spec SPECS[] = {{.weight = 5}, {.weight = 1}, {.weight = 2}};
    unsigned char *order = NULL;
    size_t len = request_order(SPECS, 3, &order);
    static const unsigned char WANTED[] = {0, 2, 0, 0, 1, 0, 2, 0};
    assert_int_equal(len, sizeof WANTED);
    assert_memory_equal(order, WANTED, len);
    free(order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_without_a_body_is_a_head),
        cmocka_unit_test(a_body_has_its_length_and_a_type),
        cmocka_unit_test(numbers_go_round_with_leading_zeros),
        cmocka_unit_test(connections_may_share_a_number),
        cmocka_unit_test(unique_digits_are_those_of_number_and_seed),
        cmocka_unit_test(each_request_has_its_line_of_the_values),
        cmocka_unit_test(a_mix_is_even_and_keeps_its_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
