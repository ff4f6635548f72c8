/* Answers that are large, come from a file, go on, or find nobody any more. */
#include "http/serving.h"

/* Which the kernel does not take at once. */
static char large[3 * MIB];

static void fill_large(void)
{
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)('a' + i % 23);
}

static void is_large(struct str answer)
{
    struct str head, body;
    const char *end = strstr(answer.ptr, "\r\n\r\n");
    assert_non_null(end);
    head = (struct str){answer.ptr, (size_t)(end - answer.ptr)};
    body = (struct str){end + 4, answer.len - head.len - 4};
    assert_int_equal(body.len, sizeof(large));
    assert_memory_equal(body.ptr, large, sizeof(large));
}

static void a_large_answer_is_sent_as_its_client_reads(void **state)
{
    struct serving *s = *state;
    struct http_reply reply;
    fill_large();
    int fd = client_open(s);
    client_send(s, fd, STR(GET_LAST("/later")));
    http_reply_init(&reply, 200, STR("text/plain"), (struct str){large, sizeof(large)});
    http_reply_add(&reply, "X-Empty", STR(""));
    http_reply_add(&reply, "X-Name", STR("value"));
    http_send(s->seen[0].req, &reply);
    settle(s);
    assert_true(http_is_answered(s->seen[0].req));
    struct str answer = client_read(s, fd, "");
    has_text(answer, "X-Name: value\r\n");
    has_no_text(answer, "X-Empty");
    is_large(answer);
    assert_int_equal(s->seen[0].unsent, 0);
    close(fd);
}

static int file_with_large(size_t len)
{
    fill_large();
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite(large, 1, len, file), len);
    fflush(file);
    int fd = dup(fileno(file));
    fclose(file);
    return fd;
}

static void send_file(struct http_request *req, int file)
{
    struct http_reply reply;
    http_reply_init(&reply, 200, STR("text/plain"), STR(""));
    reply.file_fd = file;
    http_send(req, &reply);
}

static void a_file_is_sent_whole_and_closed(void **state)
{
    struct serving *s = *state;
    int file = file_with_large(sizeof(large));
    int fd = client_open(s);
    client_send(s, fd, STR(GET_LAST("/later")));
    send_file(s->seen[0].req, file);
    is_large(client_read(s, fd, ""));
    assert_int_equal(fcntl(file, F_GETFD), -1);
    close(fd);
}

static void head_of_a_file_has_its_length_only(void **state)
{
    struct serving *s = *state;
    int file = file_with_large(1000);
    int fd = client_open(s);
    client_send(s, fd, STR("HEAD /later HTTP/1.1\r\nHost: a\r\n\r\n"));
    send_file(s->seen[0].req, file);
    has_text(client_read(s, fd, "\r\n\r\n"), "Content-Length: 1000\r\n");
    assert_int_equal(fcntl(file, F_GETFD), -1);
    close(fd);
}

static void a_file_that_shrinks_ends_the_connection_early(void **state)
{
    struct serving *s = *state;
    int file = file_with_large(sizeof(large));
    int fd = client_open(s);
    client_send(s, fd, STR(GET("/later")));
    send_file(s->seen[0].req, file);
    assert_int_equal(ftruncate(file, 10), 0);
    assert_true(client_read(s, fd, "").len < sizeof(large));
    assert_int_equal(s->seen[0].unsent, 1);
    close(fd);
}

static void a_file_for_a_client_that_left_is_closed(void **state)
{
    struct serving *s = *state;
    int file = file_with_large(10);
    int fd = client_open(s);
    client_send(s, fd, STR(GET("/later")));
    struct linger now = {1, 0};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    close(fd);
    settle(s);
    send_file(s->seen[0].req, file);
    assert_int_equal(fcntl(file, F_GETFD), -1);
    settle(s);
    assert_int_equal(s->seen[0].unsent, 1);
}

/* --- clients that leave --- */

/* By a reset, or in order. */
static void leave(struct serving *s, int fd, bool reset)
{
    struct linger now = {1, 0};
    if (reset)
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    close(fd);
    settle(s);
}

static void a_handler_learns_at_once_that_its_client_has_left(void **state)
{
    struct serving *s = *state;
    for (int reset = 0; reset < 2; reset++) {
        struct seen *seen = &s->seen[reset];
        int fd = client_open(s);
        client_send(s, fd, STR(GET("/later")));
        assert_true(http_is_connected(seen->req));
        leave(s, fd, reset == 1);
        assert_int_equal(seen->disconnected, 1);
        assert_false(http_is_connected(seen->req));
        send_text(seen->req, 200, "nobody");
        settle(s);
        assert_int_equal(seen->disconnected, 1);
        assert_int_equal(http_server_connections(s->server), 0);
    }
    assert_int_equal(s->seen[1].unsent, 1);
}

static void a_client_that_only_stops_sending_gets_its_answer(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR(GET("/later")));
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    settle(s);
    assert_int_equal(s->seen[0].disconnected, 1);
    assert_false(http_is_connected(s->seen[0].req));
    send_text(s->seen[0].req, 200, "all the same");
    (void)client_read(s, fd, "all the same");
    assert_true(client_is_closed(s, fd));
    close(fd);
}

static void a_client_that_stops_sending_is_seen_before_its_event(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR(GET("/later")));
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    assert_false(http_is_connected(s->seen[0].req));
    send_text(s->seen[0].req, 200, "x");
    (void)client_read(s, fd, "\r\n\r\nx");
    close(fd);
}

static void a_client_that_leaves_within_a_request_harms_nobody(void **state)
{
    struct serving *s = *state;
    static const char *const PARTS[] = {
        "G", "GET / HTTP/1.1\r\nHo", "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"};
    for (size_t i = 0; i < 2 * ARRAY_LEN(PARTS); i++) {
        int fd = client_open(s);
        client_send(s, fd, str_of(PARTS[i / 2]));
        leave(s, fd, i % 2 == 1);
        assert_int_equal(http_server_connections(s->server), 0);
    }
    assert_int_equal(s->seen_count, 0);
}

static void a_client_that_leaves_during_an_answer_makes_it_unsent(void **state)
{
    static char more[32 * MIB]; /* than two sockets hold */
    struct serving *s = *state;
    struct http_reply reply;
    int fd = client_open(s);
    client_send(s, fd, STR(GET("/later") GET("/ahead")));
    http_reply_init(&reply, 200, STR("text/plain"), (struct str){more, sizeof(more)});
    http_send(s->seen[0].req, &reply);
    settle(s);
    assert_int_equal(s->seen[0].unsent, 0);
    leave(s, fd, true);
    assert_int_equal(s->seen[0].unsent, 1);
    assert_int_equal(s->seen_count, 1);
}

static void a_handler_may_hang_up(void **state)
{
    struct serving *s = *state;
    int fd = client_open(s);
    client_send(s, fd, STR(GET("/later")));
    http_hang_up(s->seen[0].req);
    assert_true(http_is_answered(s->seen[0].req));
    assert_true(client_is_closed(s, fd));
    close(fd);
}

/* --- streams --- */

struct source {
    struct http_request *req;
    const char *pieces[8]; /* NULL: later */
    size_t at, end;
    enum http_piece last;
    int asked, gone;
};

static struct source source;

static enum http_piece next_piece(void *user, struct str *ret)
{
    (void)user;
    source.asked++;
    if (source.at == source.end)
        return source.last;
    const char *piece = source.pieces[source.at++];
    if (piece == NULL)
        return HTTP_LATER;
    *ret = piece == large ? (struct str){large, sizeof(large)} : str_of(piece);
    return HTTP_PIECE;
}

static void source_gone(void *user)
{
    (void)user;
    source.gone++;
}

static const struct http_source SOURCE = {next_piece, source_gone};

static int open_stream(struct serving *s, const char *request)
{
    struct http_reply reply;
    int fd = client_open(s);
    client_send(s, fd, str_of(request));
    http_reply_init(&reply, 200, STR("text/event-stream"), STR(""));
    http_send_stream(s->seen[s->seen_count - 1].req, &reply, &SOURCE);
    settle(s);
    return fd;
}

static void a_stream_sends_its_pieces_as_they_come(void **state)
{
    struct serving *s = *state;
    source = (struct source){.pieces = {"one", "two", NULL, "three"}, .end = 3, .last = HTTP_LATER};
    int fd = open_stream(s, GET("/later"));
    struct str answer = client_read(s, fd, "3\r\none\r\n3\r\ntwo\r\n");
    has_text(answer, "Transfer-Encoding: chunked\r\n");
    has_no_text(answer, "Content-Length");
    source.end = 4;
    http_stream_wake(s->seen[0].req);
    assert_string_equal(client_read(s, fd, "three\r\n").ptr, "5\r\nthree\r\n");
    assert_int_equal(source.gone, 0);
    source.last = HTTP_END;
    http_stream_wake(s->seen[0].req);
    assert_string_equal(client_read(s, fd, "0\r\n\r\n").ptr, "0\r\n\r\n");
    assert_int_equal(source.gone, 1);
    client_send(s, fd, STR(GET("/a")));
    (void)client_read(s, fd, "GET /a? ");
    close(fd);
}

static void a_large_piece_is_sent_after_the_small_ones_before_it(void **state)
{
    struct serving *s = *state;
    fill_large();
    source =
        (struct source){.pieces = {"small", large, "after", large}, .end = 4, .last = HTTP_END};
    int fd = open_stream(s, GET_LAST("/later"));
    struct str answer = client_read(s, fd, "");
    const char *body = strstr(answer.ptr, "\r\n\r\n") + 4;
    static const char FIRST[] = "5\r\nsmall\r\n300000\r\n";
    static const char SECOND[] = "\r\n5\r\nafter\r\n300000\r\n";
    static const char END[] = "\r\n0\r\n\r\n";
    assert_memory_equal(body, FIRST, sizeof(FIRST) - 1);
    body += sizeof(FIRST) - 1;
    assert_memory_equal(body, large, sizeof(large));
    body += sizeof(large);
    assert_memory_equal(body, SECOND, sizeof(SECOND) - 1);
    body += sizeof(SECOND) - 1;
    assert_memory_equal(body, large, sizeof(large));
    assert_string_equal(body + sizeof(large), END);
    assert_int_equal(source.gone, 1);
    close(fd);
}

static void http_1_0_and_head_have_streams_without_chunks(void **state)
{
    struct serving *s = *state;
    source = (struct source){.pieces = {"one", "two"}, .end = 2, .last = HTTP_END};
    int fd = open_stream(s, "GET /later HTTP/1.0\r\n\r\n");
    struct str answer = client_read(s, fd, "");
    has_no_text(answer, "chunked");
    has_text(answer, "\r\n\r\nonetwo");
    close(fd);
    source = (struct source){.pieces = {"one"}, .end = 1, .last = HTTP_END};
    fd = open_stream(s, "HEAD /later HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)client_read(s, fd, "\r\n\r\n");
    assert_int_equal(source.asked, 0);
    assert_int_equal(source.gone, 1);
    client_send(s, fd, STR(GET("/a")));
    (void)client_read(s, fd, "GET /a? ");
    close(fd);
}

static void a_stream_that_breaks_has_no_end(void **state)
{
    struct serving *s = *state;
    source = (struct source){.pieces = {"one"}, .end = 1, .last = HTTP_BROKEN};
    int fd = open_stream(s, GET("/later"));
    struct str answer = client_read(s, fd, "");
    assert_true(str_ends_with(answer, STR("3\r\none\r\n")));
    assert_int_equal(source.gone, 1);
    assert_int_equal(s->seen[0].unsent, 1);
    close(fd);
}

/* The same piece for ever. */
static enum http_piece endless(void *user, struct str *ret)
{
    static char block[1000];
    (void)user;
    memset(block, 'x', sizeof(block));
    source.asked++;
    *ret = (struct str){block, sizeof(block)};
    return HTTP_PIECE;
}

static void a_source_is_asked_no_faster_than_the_client_reads(void **state)
{
    static const struct http_source ENDLESS = {endless, source_gone};
    struct serving *s = *state;
    struct http_reply reply;
    source = (struct source){.asked = 0};
    int fd = client_open(s);
    client_send(s, fd, STR(GET("/later")));
    http_reply_init(&reply, 200, STR("text/plain"), STR(""));
    http_send_stream(s->seen[0].req, &reply, &ENDLESS);
    for (int i = 0; i < 1000; i++)
        turn(s);
    int asked = source.asked;
    assert_in_range(asked, 10, 10000); /* what the buffers of two sockets hold */
    for (int i = 0; i < 100; i++)
        turn(s);
    assert_int_equal(source.asked, asked);
    size_t got = 0;
    for (int i = 0; i < PATIENCE && source.asked == asked; i++)
        got += client_peek(s, fd).len;
    assert_true(got > 0 && source.asked > asked);
    leave(s, fd, true);
    assert_int_equal(source.gone, 1);
}

static void a_stream_ends_when_its_client_leaves(void **state)
{
    struct serving *s = *state;
    for (int reset = 0; reset < 2; reset++) {
        source = (struct source){.pieces = {"one", NULL}, .end = 2, .last = HTTP_LATER};
        int fd = open_stream(s, GET("/later"));
        (void)client_read(s, fd, "one\r\n");
        leave(s, fd, reset == 1);
        assert_int_equal(source.gone, 1);
        assert_int_equal(http_server_connections(s->server), 0);
    }
}

static void a_stream_for_a_client_that_left_ends_at_once(void **state)
{
    struct serving *s = *state;
    struct http_reply reply;
    source = (struct source){.last = HTTP_END};
    http_reply_init(&reply, 200, STR("text/plain"), STR(""));
    for (int reset = 0; reset < 2; reset++) {
        int fd = client_open(s);
        client_send(s, fd, STR(GET("/later")));
        leave(s, fd, reset == 1);
        http_send_stream(s->seen[reset].req, &reply, &SOURCE);
        http_stream_wake(s->seen[reset].req);
        settle(s);
        assert_int_equal(source.gone, reset + 1);
        assert_int_equal(source.asked, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        serving_test(a_large_answer_is_sent_as_its_client_reads),
        serving_test(a_file_is_sent_whole_and_closed),
        serving_test(head_of_a_file_has_its_length_only),
        serving_test(a_file_that_shrinks_ends_the_connection_early),
        serving_test(a_file_for_a_client_that_left_is_closed),
        serving_test(a_handler_learns_at_once_that_its_client_has_left),
        serving_test(a_client_that_only_stops_sending_gets_its_answer),
        serving_test(a_client_that_stops_sending_is_seen_before_its_event),
        serving_test(a_client_that_leaves_within_a_request_harms_nobody),
        serving_test(a_client_that_leaves_during_an_answer_makes_it_unsent),
        serving_test(a_handler_may_hang_up),
        serving_test(a_stream_sends_its_pieces_as_they_come),
        serving_test(a_large_piece_is_sent_after_the_small_ones_before_it),
        serving_test(http_1_0_and_head_have_streams_without_chunks),
        serving_test(a_stream_that_breaks_has_no_end),
        serving_test(a_source_is_asked_no_faster_than_the_client_reads),
        serving_test(a_stream_ends_when_its_client_leaves),
        serving_test(a_stream_for_a_client_that_left_ends_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
