/* A server in the test's own thread, on loopback, with a clock that the test moves; and clients
 * with plain sockets. The handler notes each request and answers by what its path says, or leaves
 * the answer to the test. */
#ifndef PAWL_TESTS_HTTP_SERVING_H
#define PAWL_TESTS_HTTP_SERVING_H

#include "testing.h"

#include "base/limits.h"
#include "http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SEEN_MAX = 64, PATIENCE = 5000 };

/* A request as the handler saw it. */
struct seen {
    struct http_request *req; /* held until seen_drop() */
    char text[256];           /* METHOD PATH?QUERY BODY, cut */
    size_t body_len;
    bool watched_had_answer;
    int disconnected, unsent, cleaned;
};

struct serving {
    struct env env;
    int64_t mono_ms;
    struct metrics *metrics;
    struct http_server *server;
    int port;
    int watched; /* a client: had it an answer when the request was seen? 0: none */
    struct seen seen[SEEN_MAX];
    size_t seen_count;
};

static inline int64_t serving_now_us(void *ctx)
{
    (void)ctx;
    return INT64_C(784111777) * 1000000; /* Sun, 06 Nov 1994 08:49:37 GMT */
}

static inline int64_t serving_mono_ns(void *ctx)
{
    return ((struct serving *)ctx)->mono_ms * 1000000;
}

static inline void serving_random(void *ctx, void *out, size_t len)
{
    (void)ctx;
    memset(out, 0xAB, len);
}

static inline void seen_disconnected(void *user)
{
    ((struct seen *)user)->disconnected++;
}

static inline void seen_unsent(void *user)
{
    ((struct seen *)user)->unsent++;
}

static inline void seen_cleaned(void *user)
{
    ((struct seen *)user)->cleaned++;
}

static inline void send_text(struct http_request *req, int status, const char *text)
{
    struct http_reply reply;
    http_reply_init(&reply, status, text[0] != '\0' ? STR("text/plain") : STR(""), str_of(text));
    reply.route = STR("/route");
    http_send(req, &reply);
}

/* The header Tenant says for whom the connection counts. /later: the test answers. Anything else is
 * answered with what was seen. */
static inline void serving_handle(void *ctx, struct http_request *req)
{
    struct serving *s = ctx;
    assert_true(s->seen_count < SEEN_MAX);
    struct seen *seen = &s->seen[s->seen_count++];
    (void)snprintf(seen->text, sizeof(seen->text), "%.*s %.*s?%.*s %.*s", STR_ARG(req->method),
                   STR_ARG(req->path), STR_ARG(req->query), (int)MIN(req->body.len, (size_t)100),
                   req->body.ptr);
    seen->req = req;
    seen->body_len = req->body.len;
    seen->watched_had_answer =
        s->watched > 0 && recv(s->watched, (char[1]){0}, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
    req->user = seen;
    req->disconnected = seen_disconnected;
    req->unsent = seen_unsent;
    req->cleanup = seen_cleaned;
    http_request_hold(req);
    struct str tenant = http_header(req, "Tenant", NULL);
    if (tenant.ptr != NULL && !http_count_for(req, tenant))
        send_text(req, 503, "the tenant has too many");
    else if (!str_is(req->path, "/later"))
        send_text(req, 200, seen->text);
}

static inline void seen_drop(struct seen *seen)
{
    struct http_request *req = seen->req;
    seen->req = NULL;
    http_request_drop(req);
}

/* The test says what is special about the server: its files for TLS, its limits. */
static inline void serving_open(struct serving *s, struct http_config config)
{
    memset(s, 0, sizeof(*s));
    s->env = (struct env){serving_now_us, serving_mono_ns, serving_random, s};
    s->mono_ms = 1000000;
    s->metrics = metrics_new();
    config.listen = "127.0.0.1:0";
    config.env = &s->env;
    config.metrics = s->metrics;
    config.handler = serving_handle;
    config.handler_ctx = s;
    struct problem p;
    problem_init(&p);
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(http_server_start(&config, &p, &s->server), ERR_OK);
    problem_release(&p);
    s->port = (int)strtol(strrchr(http_server_url(s->server), ':') + 1, NULL, 10);
}

static inline int serving_start(void **state)
{
    static struct serving s;
    serving_open(&s, (struct http_config){0});
    *state = &s;
    return 0;
}

static inline int serving_stop(void **state)
{
    struct serving *s = *state;
    for (size_t i = 0; i < s->seen_count; i++) {
        if (s->seen[i].req != NULL)
            seen_drop(&s->seen[i]);
    }
    http_server_free(s->server);
    for (size_t i = 0; i < s->seen_count; i++)
        assert_int_equal(s->seen[i].cleaned, 1);
    metrics_free(s->metrics);
    return 0;
}

/* --- turns --- */

static inline void turn(struct serving *s)
{
    struct pollfd at = {http_server_fd(s->server), POLLIN, 0};
    (void)poll(&at, 1, http_server_timeout_ms(s->server) == 0 ? 0 : 1);
    http_server_turn(s->server);
}

/* Everything that has been sent is handled: loopback delivers a few bytes at once. */
static inline void settle(struct serving *s)
{
    for (int i = 0; i < PATIENCE; i++) {
        struct pollfd at = {http_server_fd(s->server), POLLIN, 0};
        if (poll(&at, 1, 0) == 0 && http_server_timeout_ms(s->server) != 0)
            return;
        http_server_turn(s->server);
    }
}

/* Large bodies take the kernel a while. */
static inline void wait_for_seen(struct serving *s, size_t count)
{
    for (int i = 0; i < PATIENCE && s->seen_count < count; i++)
        turn(s);
    assert_int_equal(s->seen_count, count);
}

static inline void pass_ms(struct serving *s, int64_t ms)
{
    s->mono_ms += ms;
    http_server_turn(s->server);
    settle(s);
}

/* --- clients --- */

static inline int client_open_from(struct serving *s, const char *address)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address)};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)s->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static inline int client_open(struct serving *s)
{
    return client_open_from(s, "127.0.0.1");
}

/* Sends all, and lets the server take it. */
static inline void client_send(struct serving *s, int fd, struct str bytes)
{
    for (int i = 0; bytes.len > 0; i++) {
        assert_true(i < PATIENCE);
        ssize_t sent = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (sent > 0)
            bytes = (struct str){bytes.ptr + sent, bytes.len - (size_t)sent};
        turn(s);
    }
    settle(s);
}

/* Reads until the text ends with `end`, or the server closes ("" as end). */
static inline struct str client_read(struct serving *s, int fd, const char *end)
{
    static char text[8 * MIB];
    size_t len = 0;
    for (int i = 0; i < PATIENCE; i++) {
        ssize_t got = recv(fd, text + len, sizeof(text) - 1 - len, 0);
        if (got > 0)
            len += (size_t)got;
        text[len] = '\0';
        bool closed = got == 0 || (got < 0 && errno == ECONNRESET);
        if (closed && end[0] != '\0')
            fail_msg("closed after: %s", text);
        if (closed || (end[0] != '\0' && str_ends_with((struct str){text, len}, str_of(end))))
            return (struct str){text, len};
        turn(s);
    }
    fail_msg("no %s in: %s", end, text);
    return STR_NONE;
}

/* What came, without waiting. */
static inline struct str client_peek(struct serving *s, int fd)
{
    static char text[64 * KIB];
    settle(s);
    ssize_t got = recv(fd, text, sizeof(text) - 1, 0);
    text[MAX(got, (ssize_t)0)] = '\0';
    return (struct str){text, (size_t)MAX(got, (ssize_t)0)};
}

static inline bool client_is_closed(struct serving *s, int fd)
{
    char byte;
    settle(s);
    ssize_t got = recv(fd, &byte, 1, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

static inline void has_text(struct str all, const char *part)
{
    if (strstr(all.ptr, part) == NULL)
        fail_msg("no \"%s\" in: %s", part, all.ptr);
}

static inline void has_no_text(struct str all, const char *part)
{
    if (strstr(all.ptr, part) != NULL)
        fail_msg("\"%s\" in: %s", part, all.ptr);
}

/* Asks on a new connection that ends with the answer, which is returned whole. */
static inline struct str ask(struct serving *s, const char *request)
{
    int fd = client_open(s);
    client_send(s, fd, str_of(request));
    struct str answer = client_read(s, fd, "");
    close(fd);
    return answer;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_LAST(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

#define serving_test(f) cmocka_unit_test_setup_teardown(f, serving_start, serving_stop)

#endif
