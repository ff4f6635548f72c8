/* A server without memory: each allocation fails once. What cannot be answered loses its
 * connection; the server goes on, and nothing is lost. */
#include "fault_support/memory.h"
#include "http/pems.h"
#include "http/serving.h"

static struct pems pems;

/* Until the connection is closed, or nothing more comes. */
static size_t drain_client(struct serving *s, int fd)
{
    static char text[64 * KIB];
    size_t len = 0;
    for (int quiet = 0; quiet < 3 && len < sizeof(text);) {
        ssize_t got = recv(fd, text + len, sizeof(text) - len, 0);
        if (got == 0)
            break;
        quiet = got > 0 ? 0 : quiet + 1;
        len += got > 0 ? (size_t)got : 0;
        settle(s);
    }
    return len;
}

static void forget_seen(struct serving *s)
{
    for (size_t i = 0; i < s->seen_count; i++) {
        if (!http_is_answered(s->seen[i].req))
            http_hang_up(s->seen[i].req);
    }
    settle(s);
    for (size_t i = 0; i < s->seen_count; i++) {
        seen_drop(&s->seen[i]);
        assert_int_equal(s->seen[i].cleaned, 1);
    }
    memset(s->seen, 0, sizeof(s->seen));
    s->seen_count = 0;
}

/* Connects and sends with the nth allocation failing, for every n; then all is well again. */
static void with_each_failure(struct serving *s, const char *request)
{
    bool failed = true;
    for (int64_t n = 1; failed; n++) {
        assert_true(n < 1000);
        int fd = client_open(s);
        memory_arm_once(n);
        if (send(fd, request, strlen(request), MSG_NOSIGNAL) > 0)
            settle(s);
        failed = memory_disarm();
        (void)drain_client(s, fd);
        close(fd);
        settle(s);
        forget_seen(s);
        assert_int_equal(http_server_connections(s->server), 0);
    }
    int fd = client_open(s);
    client_send(s, fd, STR(GET("/well")));
    (void)client_read(s, fd, "GET /well? ");
    close(fd);
    settle(s);
    forget_seen(s);
}

static void requests_survive_it(void **state)
{
    with_each_failure(*state, GET("/a") GET("/b") GET_LAST("/c"));
    with_each_failure(*state, "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "5\r\nhello\r\n0\r\n\r\n" GET("/later"));
    with_each_failure(*state, "GET / HTTP/1.1\r\nfolded:\r\n x\r\n\r\n");
}

static void large_heads_and_bodies_survive_it(void **state)
{
    static char request[20 * KIB];
    int head =
        snprintf(request, sizeof(request),
                 "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\nA: %04000d\r\n\r\n", 1);
    assert_true(head > 0);
    memset(request + head, 'x', 10000);
    with_each_failure(*state, request);
}

/* --- streams --- */

static int pieces;

static enum http_piece next_piece(void *user, struct str *ret)
{
    (void)user;
    *ret = STR("piece");
    return pieces++ < 10000 ? HTTP_PIECE : HTTP_END;
}

static void no_more(void *user)
{
    (void)user;
    pieces = -1;
}

static void a_stream_that_its_client_does_not_read_survives_it(void **state)
{
    static const struct http_source SOURCE = {next_piece, no_more};
    struct serving *s = *state;
    bool failed = true;
    for (int64_t n = 1; failed; n++) {
        struct http_reply reply;
        int bytes = 4096;
        int fd = client_open(s);
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
        client_send(s, fd, STR(GET("/later")));
        pieces = 0;
        http_reply_init(&reply, 200, STR("text/plain"), STR(""));
        memory_arm_once(n);
        http_send_stream(s->seen[0].req, &reply, &SOURCE);
        settle(s);
        failed = memory_disarm();
        (void)drain_client(s, fd);
        close(fd);
        settle(s);
        assert_int_equal(pieces, -1);
        forget_seen(s);
    }
}

/* --- the start --- */

static void a_server_that_cannot_start_says_so(void **state)
{
    struct serving *s = *state;
    for (int with_tls = 0; with_tls < 2; with_tls++) {
        struct http_config config = {.listen = "127.0.0.1:0",
                                     .tls_cert = with_tls ? pems.cert : NULL,
                                     .tls_key = with_tls ? pems.key : NULL,
                                     .env = &s->env,
                                     .handler = serving_handle,
                                     .handler_ctx = s};
        bool failed = true;
        for (int64_t n = 1; failed && n < 60; n++) { /* then it is inside OpenSSL */
            struct http_server *server = NULL;
            struct problem p;
            problem_init(&p);
            config.metrics = metrics_new();
            memory_arm_once(n);
            enum err e = http_server_start(&config, &p, &server);
            failed = memory_disarm();
            assert_true(e == ERR_OK || (failed && p.detail[0] != '\0'));
            http_server_free(server);
            metrics_free(config.metrics);
            problem_release(&p);
        }
    }
}

static int start(void **state)
{
    pems_open(&pems, "server", 0);
    return serving_start(state);
}

static int stop(void **state)
{
    pems_close(&pems);
    return serving_stop(state);
}

#define memory_test(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        memory_test(requests_survive_it),
        memory_test(large_heads_and_bodies_survive_it),
        memory_test(a_stream_that_its_client_does_not_read_survives_it),
        memory_test(a_server_that_cannot_start_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
