/* Two HTTP servers on loopback in the test's own thread: `front` forwards everything to `owner`,
 * which answers by what the path says or leaves the answer to the test. Clients are plain sockets.
 */
#ifndef PAWL_TESTS_CLUSTER_TWO_NODES_H
#define PAWL_TESTS_CLUSTER_TWO_NODES_H

#include "testing.h"

#include "base/limits.h"
#include "cluster/forward.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SEEN_MAX = 16, TURNS_MAX = 20000 };

/* A request as the owner saw it. */
struct seen {
    struct http_request *req; /* held until the end of the test */
    struct buf headers;       /* a line each */
    int gone;
    /* Of a stream. */
    const char *pieces[4];
    size_t piece_count, piece_at;
    size_t large_left; /* bytes of one letter, in pieces */
    size_t large_given;
    bool may_end, breaks;
};

struct two_nodes {
    struct http_server *front, *owner;
    struct node_client *client;
    char url[160]; /* where the front sends requests */
    bool repeatable;
    bool notes_loss; /* the test's: answers that no client gets are counted */
    size_t lost_count, lost_len;
    bool again;           /* the test's: what was not taken is sent once more, to the owner */
    struct forward *last; /* until it is over */
    enum forward_end ends[SEEN_MAX];
    char errors[SEEN_MAX][256];
    size_t end_count;
    struct seen seen[SEEN_MAX];
    size_t seen_count;
};

/* --- the owner --- */

static inline enum http_piece seen_next(void *user, struct str *ret)
{
    static char large[16 * KIB];
    struct seen *s = user;
    if (s->piece_at < s->piece_count) {
        *ret = str_of(s->pieces[s->piece_at++]);
        return HTTP_PIECE;
    }
    if (s->large_left > 0) {
        memset(large, 'x', sizeof(large));
        *ret = (struct str){large, MIN(s->large_left, sizeof(large))};
        s->large_left -= ret->len;
        s->large_given += ret->len;
        return HTTP_PIECE;
    }
    if (s->breaks)
        return HTTP_BROKEN;
    return s->may_end ? HTTP_END : HTTP_LATER;
}

static inline void seen_gone(void *user)
{
    ((struct seen *)user)->gone++;
}

static const struct http_source SEEN_SOURCE = {seen_next, seen_gone};

static inline void owner_send(struct http_request *req, int status, const char *body)
{
    struct http_reply reply;
    http_reply_init(&reply, status, body[0] != '\0' ? STR("application/json") : STR(""),
                    str_of(body));
    http_reply_add(&reply, "ETag", STR("\"7\""));
    http_reply_add(&reply, "Idempotent-Replayed", STR("true"));
    http_send(req, &reply);
}

static inline void owner_stream(struct seen *s)
{
    struct http_reply reply;
    http_reply_init(&reply, 200, STR("text/event-stream"), STR(""));
    http_send_stream(s->req, &reply, &SEEN_SOURCE);
}

static inline void owner_handle(void *ctx, struct http_request *req)
{
    struct two_nodes *t = ctx;
    assert_true(t->seen_count < SEEN_MAX);
    struct seen *s = &t->seen[t->seen_count++];
    size_t at = 0;
    struct http_param header;
    buf_init(&s->headers, 64 * KIB);
    while (http_header_next(req, &at, &header))
        buf_printf(&s->headers, "%.*s: %.*s\n", STR_ARG(header.name), STR_ARG(header.value));
    http_request_hold(req);
    s->req = req;
    req->user = s;
    req->disconnected = seen_gone;
    if (str_is(req->path, "/echo"))
        owner_send(req, 201, arena_str(&req->arena, req->body).ptr);
    else if (str_is(req->path, "/nothing"))
        owner_send(req, 204, "");
    else if (str_is(req->path, "/hangs-up"))
        http_hang_up(req);
}

/* --- the front --- */

static inline void front_over(struct forward *f, enum forward_end end)
{
    struct two_nodes *t = f->owner;
    assert_true(t->end_count < SEEN_MAX);
    (void)snprintf(t->errors[t->end_count], sizeof(t->errors[0]), "%s", forward_error(f));
    t->ends[t->end_count++] = end;
    t->last = NULL;
    if (end == FORWARD_ANSWERED)
        return;
    if (t->again) {
        t->again = false;
        f->url = http_server_url(t->owner);
        forward_begin(f);
        return;
    }
    struct http_reply reply;
    http_reply_init(&reply, 503, STR(""), STR(""));
    http_send(f->req, &reply);
}

static inline void front_lost(struct forward *f, struct str body)
{
    struct two_nodes *t = f->owner;
    t->lost_count++;
    t->lost_len = body.len;
}

static inline void front_handle(void *ctx, struct http_request *req)
{
    struct two_nodes *t = ctx;
    struct forward *f = arena_alloc(&req->arena, sizeof(*f));
    assert_non_null(f);
    f->client = t->client;
    f->req = req;
    f->url = t->url;
    f->token = STR("the token");
    f->repeatable = t->repeatable;
    f->over = front_over;
    f->lost = t->notes_loss ? front_lost : NULL;
    f->owner = t;
    t->last = f;
    forward_begin(f);
}

/* --- both --- */

static inline struct http_server *start_server(struct two_nodes *t, http_handler *handler)
{
    struct http_config config = {
        .listen = "127.0.0.1:0", .env = &ENV_SYSTEM, .handler = handler, .handler_ctx = t};
    struct http_server *server = NULL;
    struct problem p;
    problem_init(&p);
    assert_int_equal(http_server_start(&config, &p, &server), ERR_OK);
    problem_release(&p);
    return server;
}

static inline int nodes_start(void **state)
{
    static struct two_nodes t;
    (void)signal(SIGPIPE, SIG_IGN);
    memset(&t, 0, sizeof(t));
    t.front = start_server(&t, front_handle);
    t.owner = start_server(&t, owner_handle);
    t.client = node_client_new(&(struct node_client_config){.ca = NULL});
    assert_non_null(t.client);
    (void)snprintf(t.url, sizeof(t.url), "%s", http_server_url(t.owner));
    *state = &t;
    return 0;
}

static inline void turn(struct two_nodes *t)
{
    struct pollfd fds[] = {{http_server_fd(t->front), POLLIN, 0},
                           {http_server_fd(t->owner), POLLIN, 0},
                           {node_client_fd(t->client), POLLIN, 0}};
    bool now = http_server_timeout_ms(t->front) == 0 || http_server_timeout_ms(t->owner) == 0;
    (void)poll(fds, ARRAY_LEN(fds), now ? 0 : 10);
    if (fds[2].revents != 0)
        node_client_poll(t->client);
    http_server_turn(t->front);
    http_server_turn(t->owner);
}

/* Turns until the condition holds; gives up after a while. */
#define TURN_UNTIL(t, condition)                       \
    do {                                               \
        bool holds_ = (condition);                     \
        for (int n_ = 0; n_ < TURNS_MAX && !holds_;) { \
            turn(t);                                   \
            holds_ = (condition);                      \
            n_++;                                      \
        }                                              \
        assert_true(holds_);                           \
    } while (0)

/* --- clients --- */

static inline int port_of(const struct http_server *server)
{
    return (int)strtol(strrchr(http_server_url(server), ':') + 1, NULL, 10);
}

static inline int client_open(struct two_nodes *t)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port_of(t->front)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* All of it, while the nodes take their turns. */
static inline void client_send(struct two_nodes *t, int fd, const char *text, size_t len)
{
    for (size_t sent = 0; sent < len;) {
        ssize_t n = send(fd, text + sent, len - sent, MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        turn(t);
    }
}

static inline void client_ask(struct two_nodes *t, int fd, const char *text)
{
    client_send(t, fd, text, strlen(text));
}

/* Adds what has come; false at the end of the connection. */
static inline bool client_read(int fd, struct buf *in)
{
    char bytes[64 * KIB];
    ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
    if (n > 0)
        buf_put_bytes(in, bytes, (size_t)n);
    assert_true(buf_ok(in));
    return n != 0;
}

static inline bool has(const struct buf *in, const char *text)
{
    return in->len > 0 && memmem(in->ptr, in->len, text, strlen(text)) != NULL;
}

#define READ_UNTIL(t, fd, in, text) \
    TURN_UNTIL(t, has(in, text) || (client_read(fd, in), has(in, text)))

/* Everything that a client holds is closed; the owner has answered everything. */
static inline int nodes_stop(void **state)
{
    struct two_nodes *t = *state;
    for (size_t i = 0; i < t->seen_count; i++) {
        if (!http_is_answered(t->seen[i].req))
            http_hang_up(t->seen[i].req);
    }
    TURN_UNTIL(t, t->last == NULL);
    http_server_free(t->front);
    node_client_free(t->client);
    for (size_t i = 0; i < t->seen_count; i++) {
        buf_release(&t->seen[i].headers);
        http_request_drop(t->seen[i].req);
    }
    http_server_free(t->owner);
    return 0;
}

#endif
