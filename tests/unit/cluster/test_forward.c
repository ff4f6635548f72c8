/* Requests that another node answers: what travels, what does not, and what becomes of a request
 * whose node is gone. */
#define _GNU_SOURCE /* accept4, memmem */
#include "cluster/two_nodes.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: pawl.example\r\n\r\n"
#define POST(path) "POST " path " HTTP/1.1\r\nHost: pawl.example\r\nContent-Length: 2\r\n\r\n{}"

static void ask_and_read(struct two_nodes *t, const char *text, const char *until, struct buf *in)
{
    int fd = client_open(t);
    buf_init(in, 16 * MIB);
    client_ask(t, fd, text);
    READ_UNTIL(t, fd, in, until);
    close(fd);
}

static void a_request_and_its_answer_travel_whole(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    ask_and_read(
        t,
        "PUT /echo?a=%2F&b HTTP/1.1\r\nHost: pawl.example\r\nContent-Type: application/json"
        "\r\nIdempotency-Key: k1\r\nIf-Match: \"3\"\r\nContent-Length: 9\r\n\r\n{\"a\":\"b\"}",
        "{\"a\":\"b\"}", &in);
    const struct seen *s = &t->seen[0];
    assert_true(str_is(s->req->method, "PUT") && str_is(s->req->query, "a=%2F&b"));
    assert_true(has(&s->headers, "Idempotency-Key: k1\n"));
    assert_true(has(&s->headers, "If-Match: \"3\"\n"));
    assert_true(has(&s->headers, "Content-Type: application/json\n"));
    assert_true(has(&s->headers, "Host: pawl.example\n"));
    assert_true(has(&s->headers, "X-Pawl-Forwarded: the token\n"));
    assert_true(has(&in, "HTTP/1.1 201 "));
    assert_true(has(&in, "Content-Type: application/json\r\n"));
    assert_true(has(&in, "Content-Length: 9\r\n"));
    assert_true(has(&in, "ETag: \"7\"\r\n"));
    assert_true(has(&in, "Idempotent-Replayed: true\r\n"));
    TURN_UNTIL(t, t->end_count == 1);
    assert_int_equal(t->ends[0], FORWARD_ANSWERED);
    buf_release(&in);
}

static void what_says_who_sends_it_stays_here(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    ask_and_read(t,
                 "GET /echo HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer pawl_x\r\nX-API-Key: "
                 "pawl_y\r\nX-Tenant-ID: b\r\nX-Actor: c\r\nX-Pawl-Forwarded: a forged one\r\n"
                 "x-pawl-not-taken: owner\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n",
                 "\r\n\r\n", &in);
    const struct buf *seen = &t->seen[0].headers;
    static const char *const STRIPPED[] = {"Authorization", "X-API-Key", "X-Tenant-ID",
                                           "X-Actor",       "a forged",  "x-pawl-not-taken",
                                           "X-Hop"};
    for (size_t i = 0; i < ARRAY_LEN(STRIPPED); i++)
        assert_false(has(seen, STRIPPED[i]));
    buf_release(&in);
}

static void the_trace_goes_on_at_the_other_node(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    ask_and_read(t,
                 "GET /echo HTTP/1.1\r\nHost: a\r\ntraceparent: "
                 "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=1\r\n"
                 "X-Pawl-New-Trace: 1\r\n\r\n",
                 "X-Trace-Id: 0af7651916cd43dd8448eb211c80319c\r\n\r\n", &in);
    const struct http_request *req = t->seen[0].req;
    assert_string_equal(req->trace_id, "0af7651916cd43dd8448eb211c80319c");
    assert_true(has(&t->seen[0].headers, "b7ad6b7169203331")); /* the caller's span */
    assert_true(has(&t->seen[0].headers, "tracestate: a=1\n"));
    assert_false(has(&t->seen[0].headers, "X-Pawl-New-Trace")); /* a client cannot say it */
    buf_release(&in);

    ask_and_read(t, "GET /echo HTTP/1.1\r\nHost: a\r\ntracestate: a=1\r\n\r\n", "\r\n\r\n", &in);
    assert_true(has(&in, t->seen[1].req->trace_id));
    assert_false(has(&t->seen[1].headers, "tracestate"));
    assert_true(has(&t->seen[1].headers, "X-Pawl-New-Trace: 1\n"));
    buf_release(&in);
}

static void one_connection_carries_many_requests(void **state)
{
    struct two_nodes *t = *state;
    for (int i = 0; i < 5; i++) {
        struct buf in;
        ask_and_read(t, GET("/echo"), "\r\n\r\n", &in);
        buf_release(&in);
        TURN_UNTIL(t, t->last == NULL);
    }
    assert_int_equal(t->seen_count, 5);
    assert_int_equal(http_server_connections(t->owner), 1);
}

static void answers_without_a_body_travel(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    ask_and_read(t, POST("/nothing"), "\r\n\r\n", &in);
    assert_true(has(&in, "HTTP/1.1 204 "));
    buf_release(&in);
    ask_and_read(t, "HEAD /echo HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n\r\n", &in);
    assert_true(has(&in, "HTTP/1.1 201 ") && has(&in, "ETag: \"7\"\r\n"));
    assert_true(str_is(t->seen[1].req->method, "HEAD"));
    TURN_UNTIL(t, t->end_count == 2);
    buf_release(&in);
}

static void the_largest_body_travels(void **state)
{
    static char text[HTTP_BODY_MAX + 200];
    struct two_nodes *t = *state;
    int n =
        snprintf(text, sizeof(text),
                 "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", HTTP_BODY_MAX);
    memset(text + n, 'b', HTTP_BODY_MAX);
    int fd = client_open(t);
    client_send(t, fd, text, (size_t)n + HTTP_BODY_MAX);
    TURN_UNTIL(t, t->seen_count == 1);
    assert_int_equal(t->seen[0].req->body.len, HTTP_BODY_MAX);
    close(fd);
    TURN_UNTIL(t, t->seen[0].gone == 1);
}

/* --- streams --- */

static void events_arrive_as_they_are_sent(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    buf_init(&in, MIB);
    int fd = client_open(t);
    client_ask(t, fd, GET("/events"));
    TURN_UNTIL(t, t->seen_count == 1);
    struct seen *s = &t->seen[0];
    s->pieces[0] = "data: one\n\n";
    s->piece_count = 1;
    owner_stream(s);
    READ_UNTIL(t, fd, &in, "data: one\n\n");
    assert_true(has(&in, "Content-Type: text/event-stream\r\n"));
    s->pieces[1] = "data: two\n\n";
    s->piece_count = 2;
    http_stream_wake(s->req);
    READ_UNTIL(t, fd, &in, "data: two\n\n");
    s->may_end = true;
    http_stream_wake(s->req);
    READ_UNTIL(t, fd, &in, "\r\n0\r\n\r\n");
    TURN_UNTIL(t, t->end_count == 1);
    close(fd);
    buf_release(&in);
}

static void a_client_that_leaves_ends_the_stream_at_the_owner(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    buf_init(&in, MIB);
    int fd = client_open(t);
    client_ask(t, fd, GET("/events"));
    TURN_UNTIL(t, t->seen_count == 1);
    t->seen[0].pieces[0] = "data: one\n\n";
    t->seen[0].piece_count = 1;
    owner_stream(&t->seen[0]);
    READ_UNTIL(t, fd, &in, "data: one\n\n");
    close(fd);
    TURN_UNTIL(t, t->seen[0].gone == 1);
    TURN_UNTIL(t, t->end_count == 1);
    assert_int_equal(t->ends[0], FORWARD_ANSWERED);
    buf_release(&in);
}

static void a_client_that_leaves_ends_its_long_poll_at_the_owner(void **state)
{
    struct two_nodes *t = *state;
    int fd = client_open(t);
    client_ask(t, fd, POST("/later"));
    TURN_UNTIL(t, t->seen_count == 1);
    close(fd);
    TURN_UNTIL(t, t->seen[0].gone == 1);
    TURN_UNTIL(t, t->end_count == 1);
    assert_int_equal(t->ends[0], FORWARD_ANSWERED);
}

static bool ends_with_last_chunk(const struct buf *in)
{
    return str_ends_with(buf_str(in), STR("\r\n0\r\n\r\n"));
}

static void a_slow_reader_slows_the_owner_down(void **state)
{
    enum { SIZE = 32 * MIB };
    struct two_nodes *t = *state;
    struct buf in;
    buf_init(&in, 64 * MIB);
    int fd = client_open(t);
    int small = 16 * KIB;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    client_ask(t, fd, GET("/backup"));
    TURN_UNTIL(t, t->seen_count == 1);
    struct seen *s = &t->seen[0];
    s->large_left = SIZE;
    s->may_end = true;
    owner_stream(s);
    size_t before = 0;
    for (int quiet = 0; quiet < 20; quiet++) { /* nobody reads: it stops by itself */
        turn(t);
        quiet = s->large_given != before ? 0 : quiet;
        before = s->large_given;
    }
    assert_true(s->large_given > 0 && s->large_given < SIZE / 2);
    int large = MIB; /* or every turn carries a few pages only */
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof(large));
    TURN_UNTIL(t, (client_read(fd, &in), ends_with_last_chunk(&in)));
    size_t letters = 0;
    for (size_t i = 0; i < in.len; i++)
        letters += in.ptr[i] == 'x';
    assert_true(letters >= SIZE && letters < SIZE + 100);
    close(fd);
    buf_release(&in);
}

/* --- answers that no client gets --- */

enum { LARGE = 7 * MIB }; /* more than the kernel takes */

/* A client with a small window has asked, and the owner answers with so many bytes. */
static int ask_for_large(struct two_nodes *t, char *text)
{
    int fd = client_open(t);
    int small = 4 * KIB;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    t->notes_loss = true;
    client_ask(t, fd, POST("/later"));
    TURN_UNTIL(t, t->seen_count == 1);
    memset(text, 'x', LARGE);
    text[LARGE] = '\0';
    owner_send(t->seen[0].req, 200, text);
    return fd;
}

static void a_client_that_leaves_within_a_large_answer_has_lost_it(void **state)
{
    static char text[LARGE + 1];
    struct two_nodes *t = *state;
    struct buf in;
    buf_init(&in, MIB);
    int fd = ask_for_large(t, text);
    READ_UNTIL(t, fd, &in, "HTTP/1.1 200 ");
    assert_int_equal(t->lost_count, 0);
    close(fd);
    TURN_UNTIL(t, t->lost_count == 1);
    assert_int_equal(t->lost_len, LARGE);
    buf_release(&in);
}

static void an_answer_on_its_way_to_a_client_that_has_left_is_lost_whole(void **state)
{
    static char text[LARGE + 1];
    struct two_nodes *t = *state;
    int fd = ask_for_large(t, text);
    TURN_UNTIL(t, t->last->piece.len > 0);
    assert_int_equal(t->end_count, 0);
    close(fd);
    TURN_UNTIL(t, t->end_count == 1);
    assert_int_equal(t->lost_count, 1);
    assert_int_equal(t->lost_len, LARGE);
}

static void an_answer_that_was_taken_whole_is_not_lost(void **state)
{
    static char text[LARGE + 1];
    struct two_nodes *t = *state;
    struct buf in;
    buf_init(&in, LARGE + MIB);
    int fd = ask_for_large(t, text);
    int large = MIB;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof(large));
    TURN_UNTIL(t, (client_read(fd, &in), in.len > LARGE));
    close(fd);
    TURN_UNTIL(t, t->end_count == 1);
    assert_int_equal(t->lost_count, 0);
    buf_release(&in);
}

static void a_stream_that_breaks_has_no_end(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    buf_init(&in, MIB);
    int fd = client_open(t);
    client_ask(t, fd, GET("/events"));
    TURN_UNTIL(t, t->seen_count == 1);
    t->seen[0].pieces[0] = "data: one\n\n";
    t->seen[0].piece_count = 1;
    t->seen[0].breaks = true;
    owner_stream(&t->seen[0]);
    READ_UNTIL(t, fd, &in, "data: one\n\n");
    TURN_UNTIL(t, !client_read(fd, &in));
    assert_false(has(&in, "\r\n0\r\n\r\n"));
    close(fd);
    buf_release(&in);
}

static void a_stream_that_is_ended_here_ends_well(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    buf_init(&in, MIB);
    int fd = client_open(t);
    client_ask(t, fd, GET("/events"));
    TURN_UNTIL(t, t->seen_count == 1);
    t->seen[0].pieces[0] = "data: one\n\n";
    t->seen[0].piece_count = 1;
    owner_stream(&t->seen[0]);
    READ_UNTIL(t, fd, &in, "data: one\n\n");
    t->last->ends_well = true;
    forward_cancel(t->last);
    READ_UNTIL(t, fd, &in, "\r\n0\r\n\r\n");
    TURN_UNTIL(t, t->seen[0].gone == 1);
    close(fd);
    buf_release(&in);
}

/* --- nodes that are gone --- */

static void a_node_that_cannot_be_reached_has_not_taken_it(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    (void)snprintf(t->url, sizeof(t->url), "http://127.0.0.1:1");
    ask_and_read(t, POST("/echo"), "HTTP/1.1 503 ", &in);
    assert_int_equal(t->ends[0], FORWARD_NOT_TAKEN);
    assert_non_null(strstr(t->errors[0], "connect"));
    buf_release(&in);
}

static void what_was_not_taken_may_be_sent_to_another(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    t->again = true;
    (void)snprintf(t->url, sizeof(t->url), "http://127.0.0.1:1");
    ask_and_read(t, POST("/echo"), "\r\n\r\n{}", &in);
    assert_true(has(&in, "HTTP/1.1 201 "));
    TURN_UNTIL(t, t->end_count == 2);
    assert_int_equal(t->ends[0], FORWARD_NOT_TAKEN);
    assert_int_equal(t->ends[1], FORWARD_ANSWERED);
    buf_release(&in);
}

static void a_node_that_refuses_says_why(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    buf_init(&in, MIB);
    int fd = client_open(t);
    client_ask(t, fd, POST("/later"));
    TURN_UNTIL(t, t->seen_count == 1);
    struct http_reply reply;
    http_reply_init(&reply, 503, STR(""), STR(""));
    http_reply_add(&reply, NOT_TAKEN_HEADER, STR("owner"));
    http_send(t->seen[0].req, &reply);
    READ_UNTIL(t, fd, &in, "HTTP/1.1 503 ");
    assert_int_equal(t->ends[0], FORWARD_NOT_TAKEN);
    assert_string_equal(t->errors[0], "owner");
    assert_false(has(&in, NOT_TAKEN_HEADER));
    close(fd);
    buf_release(&in);
}

static void a_node_that_dies_may_have_done_it(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    ask_and_read(t, POST("/hangs-up"), "HTTP/1.1 503 ", &in);
    assert_int_equal(t->ends[0], FORWARD_UNKNOWN);
    assert_int_equal(t->seen_count, 1);
    buf_release(&in);
}

/* libcurl would send it again: on a connection that was used before it takes the end for an idle
 * connection that was closed. */
static void a_request_without_a_key_is_sent_once(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    ask_and_read(t, GET("/echo"), "\r\n\r\n", &in);
    buf_release(&in);
    TURN_UNTIL(t, t->last == NULL);
    ask_and_read(t, POST("/hangs-up"), "HTTP/1.1 503 ", &in);
    assert_int_equal(t->ends[1], FORWARD_UNKNOWN);
    assert_int_equal(t->seen_count, 2);
    buf_release(&in);
}

static void a_repeatable_request_may_be_sent_again(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    t->repeatable = true;
    ask_and_read(t, GET("/echo"), "\r\n\r\n", &in);
    buf_release(&in);
    TURN_UNTIL(t, t->last == NULL);
    ask_and_read(t, POST("/hangs-up"), "HTTP/1.1 503 ", &in);
    assert_int_equal(t->ends[1], FORWARD_UNKNOWN);
    assert_int_equal(t->seen_count, 3);
    buf_release(&in);
}

/* --- other servers --- */

/* One connection, read until its request is there, answered with this text, and closed. */
static void answer_raw(struct two_nodes *t, int listener, const char *text)
{
    int fd = -1;
    struct buf in;
    buf_init(&in, MIB);
    TURN_UNTIL(t, (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0);
    READ_UNTIL(t, fd, &in, "\r\n\r\n{}");
    assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
    close(fd);
    buf_release(&in);
}

static int listen_raw(struct two_nodes *t)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(t->url, sizeof(t->url), "http://127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

static void an_answer_that_breaks_off_is_none(void **state)
{
    static const char *const BROKEN[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nContent-Length: 1",
        "HTTP/1.1 200 OK\r\n",
        "",
    };
    struct two_nodes *t = *state;
    int listener = listen_raw(t);
    for (size_t i = 0; i < ARRAY_LEN(BROKEN); i++) {
        struct buf in;
        buf_init(&in, MIB);
        int fd = client_open(t);
        client_ask(t, fd, POST("/x"));
        answer_raw(t, listener, BROKEN[i]);
        READ_UNTIL(t, fd, &in, "HTTP/1.1 503 ");
        assert_int_equal(t->ends[i], FORWARD_UNKNOWN);
        close(fd);
        buf_release(&in);
    }
    close(listener);
}

static void an_interim_answer_is_passed_over(void **state)
{
    struct two_nodes *t = *state;
    struct buf in;
    buf_init(&in, MIB);
    int listener = listen_raw(t);
    int fd = client_open(t);
    client_ask(t, fd, POST("/x"));
    answer_raw(t, listener,
               "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
               "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    READ_UNTIL(t, fd, &in, "\r\n\r\nok");
    assert_true(has(&in, "HTTP/1.1 200 ") && !has(&in, "Link"));
    close(fd);
    close(listener);
    buf_release(&in);
}

/* --- time --- */

static void note_news(struct node_call *call)
{
    *(int *)call->owner += 1;
}

static void a_node_that_does_not_answer_in_time_is_given_up(void **state)
{
    struct two_nodes *t = *state;
    int news = 0;
    struct node_call call = {.url = t->url,
                             .method = "POST",
                             .target = "/later",
                             .head_ms = 1,
                             .news = note_news,
                             .owner = &news};
    node_call_begin(t->client, &call);
    TURN_UNTIL(t, node_call_end(&call) != NODE_UNDER_WAY && news > 0);
    assert_int_equal(node_call_end(&call), NODE_BROKEN);
    assert_string_equal(node_call_error(&call), "The node did not answer in time");
    node_call_release(&call);
}

/* Whatever happens to a call, in whatever order, it is over once. */
static void calls_that_are_cancelled_at_once_are_over(void **state)
{
    struct two_nodes *t = *state;
    static struct node_call calls[64];
    int news = 0;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        calls[i] = (struct node_call){.url = "http://127.0.0.1:1",
                                      .method = "GET",
                                      .target = "/",
                                      .news = note_news,
                                      .owner = &news};
        node_call_begin(t->client, &calls[i]);
        if (i % 2 == 0)
            node_call_cancel(&calls[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        TURN_UNTIL(t, node_call_end(&calls[i]) != NODE_UNDER_WAY);
        node_call_cancel(&calls[i]);
        node_call_release(&calls[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, nodes_start, nodes_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_and_its_answer_travel_whole),
        TEST(what_says_who_sends_it_stays_here),
        TEST(the_trace_goes_on_at_the_other_node),
        TEST(one_connection_carries_many_requests),
        TEST(answers_without_a_body_travel),
        TEST(the_largest_body_travels),
        TEST(events_arrive_as_they_are_sent),
        TEST(a_client_that_leaves_ends_the_stream_at_the_owner),
        TEST(a_client_that_leaves_ends_its_long_poll_at_the_owner),
        TEST(a_slow_reader_slows_the_owner_down),
        TEST(a_client_that_leaves_within_a_large_answer_has_lost_it),
        TEST(an_answer_on_its_way_to_a_client_that_has_left_is_lost_whole),
        TEST(an_answer_that_was_taken_whole_is_not_lost),
        TEST(a_stream_that_breaks_has_no_end),
        TEST(a_stream_that_is_ended_here_ends_well),
        TEST(a_node_that_cannot_be_reached_has_not_taken_it),
        TEST(what_was_not_taken_may_be_sent_to_another),
        TEST(a_node_that_refuses_says_why),
        TEST(a_node_that_dies_may_have_done_it),
        TEST(a_request_without_a_key_is_sent_once),
        TEST(a_repeatable_request_may_be_sent_again),
        TEST(an_answer_that_breaks_off_is_none),
        TEST(an_interim_answer_is_passed_over),
        TEST(a_node_that_does_not_answer_in_time_is_given_up),
        TEST(calls_that_are_cancelled_at_once_are_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
