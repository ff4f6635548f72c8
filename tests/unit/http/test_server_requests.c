/* Requests on real sockets: what reaches the handler, and what the client gets. */
#include "http/serving.h"

static void an_answer_has_the_fields_that_every_answer_has(void **state)
{
    struct str answer = ask(*state, GET_LAST("/a?b"));
    assert_string_equal(answer.ptr, "HTTP/1.1 200 OK\r\n"
                                    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                                    "Content-Type: text/plain\r\n"
                                    "Content-Length: 9\r\n"
                                    "Connection: close\r\n"
                                    "Cache-Control: no-store\r\n"
                                    "X-Content-Type-Options: nosniff\r\n"
                                    "X-Trace-Id: abababababababababababababababab\r\n"
                                    "\r\n"
                                    "GET /a?b ");
}

static void a_connection_is_kept_between_requests(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    for (int i = 0; i < 3; i++) {
        client_send(s, fd, STR(GET("/a")));
        has_no_text(client_read(s, fd, "GET /a? "), "Connection:");
    }
    assert_int_equal(http_server_connections(s->server), 1);
    close(fd);
    settle(s);
    assert_int_equal(http_server_connections(s->server), 0);
}

static void a_request_in_single_bytes_is_one_request(void **state)
{
    struct serving *s = *state;
    static const char TEXT[] = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    int fd = client_open(s);
    for (size_t i = 0; i < sizeof(TEXT) - 1; i++)
        client_send(s, fd, (struct str){TEXT + i, 1});
    (void)client_read(s, fd, "POST /a? hello");
    assert_int_equal(s->seen_count, 1);
    close(fd);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(
        s, fd,
        STR(GET("/later") "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
                          "POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                          "2\r\nho\r\n0\r\n\r\n" GET("/4")));
    assert_int_equal(s->seen_count, 1);
    assert_int_equal(client_peek(s, fd).len, 0);
    send_text(s->seen[0].req, 200, "first");
    struct str all = client_read(s, fd, "GET /4? ");
    const char *at = all.ptr;
    static const char *const ORDER[] = {"\r\n\r\nfirst", "POST /2? hi", "POST /3? ho", "GET /4? "};
    for (size_t i = 0; i < ARRAY_LEN(ORDER); i++) {
        at = strstr(at, ORDER[i]);
        assert_non_null(at);
    }
    close(fd);
}

static void many_pipelined_requests_are_all_answered(void **state)
{
    struct serving *s = *state;
    static const char TEXT[] = GET("/a");
    char all[50 * sizeof(TEXT)];
    all[0] = '\0';
    for (int i = 0; i < 50; i++)
        memcpy(all + (size_t)i * (sizeof(TEXT) - 1), TEXT, sizeof(TEXT));
    int fd = client_open(s);
    client_send(s, fd, str_of(all));
    client_send(s, fd, STR(GET_LAST("/end")));
    struct str got = client_read(s, fd, "");
    has_text(got, "GET /end? ");
    assert_int_equal(s->seen_count, 51);
    close(fd);
}

/* A client with many connections wakes once, and not for each answer. */
static void all_requests_of_a_turn_are_read_before_one_is_answered(void **state)
{
    struct serving *s = *state;
    int fds[3];
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = client_open(s);
    settle(s);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        assert_true(send(fds[i], GET("/a"), sizeof(GET("/a")) - 1, 0) > 0);
    s->watched = fds[0];
    turn(s);
    assert_int_equal(s->seen_count, ARRAY_LEN(fds));
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        assert_false(s->seen[i].watched_had_answer);
        (void)client_read(s, fds[i], "GET /a? "); /* answered in the same turn */
        close(fds[i]);
    }
}

static void a_url_as_target_gives_its_path_and_host(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR("GET http://inside:1?q HTTP/1.1\r\nHost: outside\r\n\r\n"));
    (void)client_read(s, fd, "GET /?q ");
    size_t count;
    assert_true(str_is(http_header(s->seen[0].req, "host", &count), "inside:1"));
    assert_int_equal(count, 1);
    close(fd);
}

static void headers_are_found_by_name_in_any_case(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR("GET / HTTP/1.1\r\nHost: h\r\nX-a: 1\r\nx-A: 2\r\nX-b:\r\n\r\n"));
    (void)client_read(s, fd, "GET /? ");
    struct http_request *req = s->seen[0].req;
    size_t count;
    assert_true(str_is(http_header(req, "X-A", &count), "1"));
    assert_int_equal(count, 2);
    assert_true(str_is(http_header(req, "x-b", NULL), ""));
    assert_non_null(http_header(req, "x-b", NULL).ptr);
    assert_null(http_header(req, "x-c", &count).ptr);
    assert_int_equal(count, 0);
    assert_true(str_is(req->peer, "127.0.0.1"));
    close(fd);
}

/* --- versions, methods, statuses --- */

static void http_1_0_ends_the_connection_unless_it_asks_otherwise(void **state)
{
    struct serving *s = *state;
    has_text(ask(s, "GET / HTTP/1.0\r\n\r\n"), "Connection: close\r\n");
    int fd = client_open(s);
    client_send(s, fd, STR("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    has_text(client_read(s, fd, "GET /? "), "Connection: keep-alive\r\n");
    client_send(s, fd, STR("GET / HTTP/1.0\r\n\r\n"));
    (void)client_read(s, fd, "");
    close(fd);
}

static void head_has_the_length_and_no_content(void **state)
{
    struct str answer = ask(*state, "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    has_text(answer, "Content-Length: 8\r\n");
    assert_true(str_ends_with(answer, STR("\r\n\r\n")));
}

static void some_statuses_have_no_content(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    static const int STATUSES[] = {204, 304};
    for (size_t i = 0; i < ARRAY_LEN(STATUSES); i++) {
        client_send(s, fd, STR(GET("/later")));
        send_text(s->seen[i].req, STATUSES[i], "");
        has_no_text(client_read(s, fd, "\r\n\r\n"), "Content-Length");
    }
    client_send(s, fd, STR(GET("/later")));
    send_text(s->seen[2].req, 200, "");
    has_text(client_read(s, fd, "\r\n\r\n"), "Content-Length: 0\r\n");
    close(fd);
}

static void any_status_can_be_sent(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    static const int STATUSES[] = {201, 202, 401, 403, 404, 405, 409, 412,
                                   415, 421, 422, 429, 500, 503, 299};
    for (size_t i = 0; i < ARRAY_LEN(STATUSES); i++) {
        char line[32];
        client_send(s, fd, STR(GET("/later")));
        send_text(s->seen[i].req, STATUSES[i], "x");
        (void)snprintf(line, sizeof(line), "HTTP/1.1 %d ", STATUSES[i]);
        has_text(client_read(s, fd, "\r\n\r\nx"), line);
    }
    close(fd);
}

static void options_about_the_server_are_answered_by_it(void **state)
{
    static const char *const TARGETS[] = {"*", "http://inside"};
    for (size_t i = 0; i < ARRAY_LEN(TARGETS); i++) {
        char request[128];
        (void)snprintf(request, sizeof(request),
                       "OPTIONS %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", TARGETS[i]);
        struct str answer = ask(*state, request);
        has_text(answer, "HTTP/1.1 204 No Content\r\n");
        has_text(answer, "Allow: GET, ");
    }
    has_text(ask(*state, "OPTIONS / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
             "OPTIONS /? ");
}

/* --- bodies --- */

static char large[2 * MIB];

static struct str large_body(size_t len)
{
    for (size_t i = 0; i < len; i++)
        large[i] = (char)('a' + i % 26);
    return (struct str){large, len};
}

static void a_body_may_be_as_large_as_the_limit(void **state)
{
    struct serving *s = *state;
    char head[128];
    int fd = client_open(s);
    (void)snprintf(head, sizeof(head), "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
                   HTTP_BODY_MAX);
    client_send(s, fd, str_of(head));
    client_send(s, fd, large_body(HTTP_BODY_MAX));
    client_send(s, fd, STR(GET("/next")));
    (void)client_read(s, fd, "GET /next? ");
    assert_int_equal(s->seen[0].body_len, HTTP_BODY_MAX);
    assert_memory_equal(s->seen[0].req->body.ptr, large, HTTP_BODY_MAX);
    close(fd);
}

static void a_chunked_body_is_put_together(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"));
    struct str all = large_body(HTTP_BODY_MAX);
    for (size_t at = 0, n = 1; at < all.len; at += n, n = MIN(n * 3 + 1, all.len - at)) {
        char line[24];
        (void)snprintf(line, sizeof(line), "%zx\r\n", n);
        client_send(s, fd, str_of(line));
        client_send(s, fd, (struct str){all.ptr + at, n});
        client_send(s, fd, STR("\r\n"));
    }
    client_send(s, fd, STR("0\r\n\r\n" GET("/next")));
    (void)client_read(s, fd, "GET /next? ");
    assert_int_equal(s->seen[0].body_len, HTTP_BODY_MAX);
    assert_memory_equal(s->seen[0].req->body.ptr, large, HTTP_BODY_MAX);
    close(fd);
}

static void a_body_that_is_too_large_is_read_and_refused(void **state)
{
    struct serving *s = *state;
    char head[128];
    int fd = client_open(s);
    (void)snprintf(head, sizeof(head), "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
                   sizeof(large));
    client_send(s, fd, str_of(head));
    client_send(s, fd, large_body(sizeof(large)));
    client_send(s, fd, STR(GET("/next")));
    struct str all = client_read(s, fd, "GET /next? ");
    has_text(all, "HTTP/1.1 413 ");
    has_text(all, "\"code\":\"BODY_TOO_LARGE\"");
    assert_int_equal(s->seen_count, 1);
    close(fd);
}

static void chunks_that_are_too_large_are_read_and_refused(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"));
    for (int i = 0; i < 3; i++) {
        client_send(s, fd, STR("80000\r\n"));
        client_send(s, fd, large_body(0x80000));
        client_send(s, fd, STR("\r\n"));
    }
    client_send(s, fd, STR("0\r\n\r\n" GET("/next")));
    has_text(client_read(s, fd, "GET /next? "), "HTTP/1.1 413 ");
    close(fd);
}

static void a_client_that_expects_100_gets_it_before_it_sends(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(
        s, fd,
        STR("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
    assert_string_equal(client_read(s, fd, "\r\n\r\n").ptr, "HTTP/1.1 100 Continue\r\n\r\n");
    client_send(s, fd, STR("hi"));
    has_text(client_read(s, fd, "PUT /? hi"), "HTTP/1.1 200 OK");
    client_send(
        s, fd,
        STR("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi"));
    has_no_text(client_read(s, fd, "PUT /? hi"), "100 Continue");
    client_send(s, fd, STR("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"));
    has_no_text(client_read(s, fd, "GET /? "), "100 Continue");
    close(fd);
}

static void a_client_that_expects_100_for_too_much_is_refused_instead(void **state)
{
    struct str answer = ask(*state, "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                                    "Content-Length: 2000000\r\n\r\n");
    has_text(answer, "HTTP/1.1 413 ");
    has_text(answer, "Connection: close\r\n");
}

/* --- refusals --- */

static void what_is_malformed_is_answered_and_the_connection_ends(void **state)
{
    static const struct {
        const char *request, *status, *code;
    } CASES[] = {
        {"hello\r\n\r\n", "400 Bad Request", "BAD_REQUEST"},
        {"\x16\x03\x01", "400 Bad Request", "BAD_REQUEST"},
        {"GET / HTTP/2.0\r\n\r\n", "505 HTTP Version Not Supported", "HTTP_VERSION_NOT_SUPPORTED"},
        {"GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", "417 Expectation Failed",
         "EXPECTATION_FAILED"},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n",
         "413 Content Too Large", "BODY_TOO_LARGE"},
        {"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx", "400 Bad Request",
         "BAD_REQUEST"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct str answer = ask(*state, CASES[i].request);
        has_text(answer, CASES[i].status);
        has_text(answer, CASES[i].code);
        has_text(answer, "Content-Type: application/problem+json\r\n");
        has_text(answer, "Connection: close\r\n");
        has_text(answer, "\"trace_id\":\"abab");
    }
    assert_int_equal(((struct serving *)*state)->seen_count, 0);
}

static void limits_of_the_head_are_answered(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR("GET /"));
    client_send(s, fd, large_body(9000));
    has_text(client_read(s, fd, ""), "HTTP/1.1 414 URI Too Long");
    close(fd);
    fd = client_open(s);
    client_send(s, fd, STR("GET / HTTP/1.1\r\nHost: a\r\nA: "));
    client_send(s, fd, large_body(9000));
    has_text(client_read(s, fd, ""), "HTTP/1.1 431 Request Header Fields Too Large");
    close(fd);
}

static void what_follows_a_refused_request_is_not_read(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR("GET / HTTP/1.1\r\nHost: a\r\n x\r\n\r\n" GET("/a")));
    struct str answer = client_read(s, fd, "");
    has_no_text(answer, "200 OK");
    close(fd);
    assert_int_equal(s->seen_count, 0);
}

static void a_refused_client_that_still_sends_can_read_why(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR("BAD\r\n"));
    for (int i = 0; i < 20; i++)
        client_send(s, fd, large_body(KIB));
    has_text(client_read(s, fd, ""), "HTTP/1.1 400 ");
    assert_int_equal(http_server_connections(s->server), 1);
    close(fd);
    settle(s);
    assert_int_equal(http_server_connections(s->server), 0);
}

/* --- traces --- */

#define TRACE "0af7651916cd43dd8448eb211c80319c"

static void a_valid_trace_is_continued(void **state)
{
    static const struct {
        const char *fields;
        bool valid;
    } CASES[] = {
        {"traceparent: 00-" TRACE "-b7ad6b7169203331-01\r\n", true},
        {"traceparent:\t00-" TRACE "-b7ad6b7169203331-00 \r\n", true},
        {"traceparent: cc-" TRACE "-b7ad6b7169203331-01\r\n", true},
        {"traceparent: cc-" TRACE "-b7ad6b7169203331-01-more\r\n", true},
        {"traceparent: cc-" TRACE "-b7ad6b7169203331-01.more\r\n", false},
        {"traceparent: 00-" TRACE "-b7ad6b7169203331-01-more\r\n", false},
        {"traceparent: ff-" TRACE "-b7ad6b7169203331-01\r\n", false},
        {"traceparent: 00-" TRACE "-0000000000000000-01\r\n", false},
        {"traceparent: 00-00000000000000000000000000000000-b7ad6b7169203331-01\r\n", false},
        {"traceparent: 00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n", false},
        {"traceparent: 00-" TRACE "-b7ad6b716920333g-01\r\n", false},
        {"traceparent: 00-" TRACE "-b7ad6b7169203331-.1\r\n", false},
        {"traceparent: .0-" TRACE "-b7ad6b7169203331-01\r\n", false},
        {"traceparent: 00." TRACE "-b7ad6b7169203331-01\r\n", false},
        {"traceparent: 00-" TRACE ".b7ad6b7169203331-01\r\n", false},
        {"traceparent: 00-" TRACE "-b7ad6b7169203331.01\r\n", false},
        {"traceparent: 00-" TRACE "-b7ad6b7169203331-1\r\n", false},
        {"traceparent: 00-" TRACE "-b7ad6b7169203331-01\r\n"
         "traceparent: 00-" TRACE "-b7ad6b7169203331-01\r\n",
         false},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char request[400];
        (void)snprintf(request, sizeof(request),
                       "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n", CASES[i].fields);
        has_text(ask(*state, request), CASES[i].valid ? "X-Trace-Id: " TRACE : "X-Trace-Id: abab");
        const struct seen *seen = &((struct serving *)*state)->seen[i];
        assert_int_equal(seen->req->traceparent.ptr != NULL, CASES[i].valid);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        serving_test(an_answer_has_the_fields_that_every_answer_has),
        serving_test(a_connection_is_kept_between_requests),
        serving_test(a_request_in_single_bytes_is_one_request),
        serving_test(pipelined_requests_are_answered_in_order),
        serving_test(many_pipelined_requests_are_all_answered),
        serving_test(all_requests_of_a_turn_are_read_before_one_is_answered),
        serving_test(a_url_as_target_gives_its_path_and_host),
        serving_test(headers_are_found_by_name_in_any_case),
        serving_test(http_1_0_ends_the_connection_unless_it_asks_otherwise),
        serving_test(head_has_the_length_and_no_content),
        serving_test(some_statuses_have_no_content),
        serving_test(any_status_can_be_sent),
        serving_test(options_about_the_server_are_answered_by_it),
        serving_test(a_body_may_be_as_large_as_the_limit),
        serving_test(a_chunked_body_is_put_together),
        serving_test(a_body_that_is_too_large_is_read_and_refused),
        serving_test(chunks_that_are_too_large_are_read_and_refused),
        serving_test(a_client_that_expects_100_gets_it_before_it_sends),
        serving_test(a_client_that_expects_100_for_too_much_is_refused_instead),
        serving_test(what_is_malformed_is_answered_and_the_connection_ends),
        serving_test(limits_of_the_head_are_answered),
        serving_test(what_follows_a_refused_request_is_not_read),
        serving_test(a_refused_client_that_still_sends_can_read_why),
        serving_test(a_valid_trace_is_continued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
