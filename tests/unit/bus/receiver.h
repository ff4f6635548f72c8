/* A small HTTP receiver on loopback for the tests of outbound calls: a thread per connection, what
 * it does chosen by the path, everything that it was sent kept. */
#ifndef PAWL_TESTS_BUS_RECEIVER_H
#define PAWL_TESTS_BUS_RECEIVER_H

#include "base/support.h"

#include "base/limits.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum { REQUESTS_KEPT = 512, CONNECTIONS_KEPT = 512, REQUEST_TEXT_MAX = 2 * MIB };

struct receiver {
    int fd;
    int port;
    int stop_fd; /* readable when it is to end */
    int stop_write;
    pthread_t thread;
    pthread_t connections[CONNECTIONS_KEPT];
    int sockets[CONNECTIONS_KEPT];
    size_t connection_count;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    char *requests[REQUESTS_KEPT]; /* heads and bodies as they came */
    size_t request_count;
    size_t answering;     /* requests under way */
    size_t answering_max; /* the most there were at once */
    bool gate_open;       /* requests for /gate wait for it */
};

struct visit {
    struct receiver *r;
    int fd;
};

/* --- reading --- */

static inline bool send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static inline bool send_text(int fd, const char *text)
{
    return send_all(fd, text, strlen(text));
}

static inline size_t body_length(const char *head)
{
    const char *at = strstr(head, "Content-Length: ");
    return at != NULL ? (size_t)strtoul(at + strlen("Content-Length: "), NULL, 10) : 0;
}

/* One request, owned by the caller; NULL when the connection ends. */
static inline char *read_request(int fd)
{
    struct buf text;
    buf_init(&text, REQUEST_TEXT_MAX);
    for (;;) {
        char part[4096];
        const char *end = text.len > 0 ? strstr(text.ptr, "\r\n\r\n") : NULL;
        if (end != NULL && text.len >= (size_t)(end + 4 - text.ptr) + body_length(text.ptr))
            return text.ptr;
        ssize_t n = recv(fd, part, sizeof(part), 0);
        if (n <= 0) {
            buf_release(&text);
            return NULL;
        }
        buf_put_bytes(&text, part, (size_t)n);
        assert(buf_ok(&text));
        if (text.ptr[0] == 0x16) { /* TLS, which is not spoken here */
            (void)send_text(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
            buf_release(&text);
            return NULL;
        }
    }
}

/* --- answering --- */

static inline bool answer(int fd, const char *status, const char *headers, const char *body)
{
    struct buf text;
    buf_init(&text, REQUEST_TEXT_MAX);
    buf_printf(&text, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status, headers,
               strlen(body), body);
    bool ok = send_all(fd, text.ptr, text.len);
    buf_release(&text);
    return ok;
}

static inline bool answer_sized(int fd, size_t size)
{
    char head[128];
    char *body = malloc(size + 1);
    assert(body != NULL);
    memset(body, 'x', size);
    (void)snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", size);
    bool ok = send_text(fd, head) && send_all(fd, body, size);
    free(body);
    return ok;
}

/* /to/307/http://… redirects there with that status. */
static inline bool answer_redirect(int fd, const char *path)
{
    char line[4096];
    char status[64];
    (void)snprintf(status, sizeof(status), "%.3s Elsewhere", path + strlen("/to/"));
    (void)snprintf(line, sizeof(line), "Location: %s\r\n", path + strlen("/to/307/"));
    return answer(fd, status, line, "elsewhere");
}

/* /down/5 redirects to /down/4 … /down/0, which is there. */
static inline bool answer_down(int fd, const char *path)
{
    char line[64];
    long left = strtol(path + strlen("/down/"), NULL, 10);
    (void)snprintf(line, sizeof(line), "Location: %ld\r\n", left - 1);
    return left > 0 ? answer(fd, "302 Found", line, "") : answer(fd, "200 OK", "", "ground");
}

static inline bool send_for_ever(int fd, const char *head, const char *piece)
{
    if (!send_text(fd, head))
        return false;
    while (send_text(fd, piece)) {
    }
    return false;
}

static inline bool answer_without_end(int fd, const char *header)
{
    char head[128];
    char piece[4097];
    (void)snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\n%s\r\n\r\n", header);
    memset(piece, 'x', sizeof(piece) - 1);
    piece[sizeof(piece) - 1] = '\0';
    return send_for_ever(fd, head, piece);
}

static inline bool hang(int fd)
{
    char ignored[64];
    while (recv(fd, ignored, sizeof(ignored), 0) > 0) {
    }
    return false;
}

/* False: the connection is over. */
static inline bool serve(struct receiver *r, int fd, const char *path, const char *request)
{
    if (strcmp(path, "/ok") == 0)
        return answer(fd, "200 OK", "Content-Type: text/plain\r\nX-Twice: a\r\nX-Twice: b\r\n",
                      "fine");
    if (strcmp(path, "/echo") == 0)
        return answer(fd, "200 OK", "", request);
    if (strcmp(path, "/v1/traces") == 0)
        return answer(fd, "200 OK", "Content-Type: application/json\r\n", "{}");
    if (strcmp(path, "/empty") == 0)
        return answer(fd, "204 No Content", "", "");
    if (strcmp(path, "/head") == 0)
        return send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n");
    if (strcmp(path, "/500") == 0)
        return answer(fd, "500 Broken", "Retry-After: 7\r\n", "sorry");
    if (strncmp(path, "/status/", 8) == 0)
        return answer(fd, path + strlen("/status/"), "", "");
    if (strcmp(path, "/304") == 0)
        return answer(fd, "304 Not Modified", "", "");
    if (strcmp(path, "/300") == 0)
        return answer(fd, "302 Found", "", "nowhere");
    if (strncmp(path, "/to/", 4) == 0)
        return answer_redirect(fd, path);
    if (strncmp(path, "/down/", 6) == 0)
        return answer_down(fd, path);
    if (strcmp(path, "/loop") == 0)
        return answer(fd, "302 Found", "Location: /loop\r\n", "");
    if (strcmp(path, "/interim") == 0)
        return send_text(fd, "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n") &&
               answer(fd, "200 OK", "X-Late: 1\r\n", "now");
    if (strcmp(path, "/limit") == 0)
        return answer_sized(fd, CALL_RESPONSE_MAX);
    if (strcmp(path, "/past") == 0)
        return answer_sized(fd, CALL_RESPONSE_MAX + 1);
    if (strcmp(path, "/endless") == 0)
        return answer_without_end(fd, "Connection: close");
    if (strcmp(path, "/gigabyte") == 0)
        return answer_without_end(fd, "Content-Length: 1073741824");
    if (strcmp(path, "/headers") == 0)
        return send_for_ever(fd, "HTTP/1.1 200 OK\r\n", "X-More: of this and that\r\n");
    if (strcmp(path, "/interims") == 0)
        return send_for_ever(fd, "", "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n");
    if (strcmp(path, "/close") == 0)
        return false;
    if (strcmp(path, "/half") == 0)
        return send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf") && false;
    if (strcmp(path, "/half-head") == 0)
        return send_text(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n") && false;
    if (strcmp(path, "/half-line") == 0)
        return send_text(fd, "HTTP/1.1 200 OK\r\nContent-Le") && false;
    if (strcmp(path, "/garbage") == 0)
        return send_text(fd, "SSH-2.0-OpenSSH_9.2\r\n\r\n") && false;
    if (strcmp(path, "/trickle") == 0)
        return send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx") && hang(fd);
    if (strcmp(path, "/gate") == 0) {
        pthread_mutex_lock(&r->lock);
        while (!r->gate_open)
            pthread_cond_wait(&r->changed, &r->lock);
        pthread_mutex_unlock(&r->lock);
        return answer(fd, "200 OK", "", "through");
    }
    return hang(fd); /* /silent */
}

static inline void note_request(struct receiver *r, char *request)
{
    pthread_mutex_lock(&r->lock);
    assert(r->request_count < REQUESTS_KEPT);
    r->requests[r->request_count++] = request;
    r->answering++;
    r->answering_max = MAX(r->answering_max, r->answering);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static inline void note_answered(struct receiver *r)
{
    pthread_mutex_lock(&r->lock);
    r->answering--;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static inline void *connection_main(void *ctx)
{
    struct visit *v = ctx;
    bool more = true;
    while (more) {
        char *request = read_request(v->fd);
        if (request == NULL)
            break;
        char path[2048] = "";
        const char *at = strchr(request, ' ');
        assert(at != NULL);
        (void)snprintf(path, sizeof(path), "%.*s", (int)strcspn(at + 1, " "), at + 1);
        note_request(v->r, request);
        more = serve(v->r, v->fd, path, request);
        note_answered(v->r);
    }
    (void)shutdown(v->fd, SHUT_RDWR);
    free(v);
    return NULL;
}

/* --- life --- */

static inline void *receiver_main(void *ctx)
{
    struct receiver *r = ctx;
    for (;;) {
        struct pollfd fds[] = {{r->fd, POLLIN, 0}, {r->stop_fd, POLLIN, 0}};
        (void)poll(fds, 2, -1);
        if (fds[1].revents != 0)
            return NULL;
        int fd = accept(r->fd, NULL, NULL);
        if (fd < 0)
            continue;
        assert(r->connection_count < CONNECTIONS_KEPT);
        struct visit *v = malloc(sizeof(*v));
        assert(v != NULL);
        *v = (struct visit){r, fd};
        size_t i = r->connection_count++;
        r->sockets[i] = fd;
        int rc = pthread_create(&r->connections[i], NULL, connection_main, v);
        assert(rc == 0);
    }
}

static inline struct receiver *receiver_start(void)
{
    struct receiver *r = calloc(1, sizeof(*r));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int ends[2];
    assert_non_null(r);
    r->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_true(r->fd >= 0);
    assert_int_equal(bind(r->fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(r->fd, 512), 0);
    assert_int_equal(getsockname(r->fd, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(pipe(ends), 0);
    r->stop_fd = ends[0];
    r->stop_write = ends[1];
    r->port = ntohs(address.sin_port);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    assert_int_equal(pthread_create(&r->thread, NULL, receiver_main, r), 0);
    return r;
}

static inline void receiver_open_gate(struct receiver *r)
{
    pthread_mutex_lock(&r->lock);
    r->gate_open = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

/* Until so many requests are under way. */
static inline void receiver_wait_answering(struct receiver *r, size_t count)
{
    pthread_mutex_lock(&r->lock);
    while (r->answering != count)
        pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

static inline void receiver_stop(struct receiver *r)
{
    receiver_open_gate(r);
    assert_int_equal(write(r->stop_write, "x", 1), 1);
    pthread_join(r->thread, NULL);
    for (size_t i = 0; i < r->connection_count; i++) {
        (void)shutdown(r->sockets[i], SHUT_RDWR);
        pthread_join(r->connections[i], NULL);
        close(r->sockets[i]);
    }
    for (size_t i = 0; i < r->request_count; i++)
        free(r->requests[i]);
    close(r->fd);
    close(r->stop_fd);
    close(r->stop_write);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->changed);
    free(r);
}

#endif
