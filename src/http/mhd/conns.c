/* Closes connections of slow or silent clients. libmicrohttpd only measures how long a
 * connection was silent; a client that sends a byte now and then would hold it forever. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "http/mhd/internal.h"

#include <linux/tcp.h> /* the C library's tcp_info lacks tcpi_bytes_received */
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

enum { SWEEP_MS = 1000 };

static uint64_t bytes_received(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);
    memset(&info, 0, sizeof(info));
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return 0;
    return info.tcpi_bytes_received;
}

void conn_enter(struct http_server *s, struct conn *conn, enum conn_phase phase)
{
    conn->phase = phase;
    conn->since_ms = env_mono_ms(s->config.env);
    if (phase == CONN_HEAD) {
        conn->first = false;
        conn->streaming = false;
        conn->since_ms = -1;
        conn->bytes_before =
            0; /* read at the first sweep: the hot path makes no system call for this */
    }
}

void conn_notify(void *ctx, struct MHD_Connection *connection, void **socket_context,
                 enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = ctx;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct conn *conn = calloc(1, sizeof(*conn));
        if (conn == NULL)
            return; /* served, but not watched */
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        conn->fd = info != NULL ? info->connect_fd : -1;
        conn->first = true;
        conn->phase = CONN_HEAD;
        conn->since_ms = env_mono_ms(s->config.env);
        conn->next = s->conns;
        if (s->conns != NULL)
            s->conns->prev = conn;
        s->conns = conn;
        s->conn_count++;
        *socket_context = conn;
        return;
    }
    struct conn *conn = *socket_context;
    if (conn == NULL)
        return;
    *(conn->prev != NULL ? &conn->prev->next : &s->conns) = conn->next;
    if (conn->next != NULL)
        conn->next->prev = conn->prev;
    s->conn_count--;
    *socket_context = NULL;
    /* libmicrohttpd does not report the end of a request whose head was never complete. */
    if (conn->request != NULL)
        http_request_drop(&conn->request->pub);
    free(conn);
}

/* Has a byte arrived since the last request ended? Found at a sweep, so at most a second late. */
static bool head_is_late(struct conn *conn, int64_t now)
{
    if (!conn->first && conn->since_ms < 0) {
        uint64_t bytes = bytes_received(conn->fd);
        if (conn->bytes_before == 0)
            conn->bytes_before = bytes;
        else if (bytes > conn->bytes_before)
            conn->since_ms = now;
    }
    return conn->since_ms >= 0 && now - conn->since_ms > HTTP_HEAD_TIMEOUT_MS;
}

/* The client has closed its side and all that it sent is read: the rest of the body will not come.
 * libmicrohttpd misses the end of a stream that arrives together with data. */
static bool has_hung_up(const struct conn *conn)
{
    char byte;
    return recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* A connection that waits for its answer is suspended: libmicrohttpd does not poll it. */
bool http_is_connected(const struct http_request *req)
{
    const struct request *r = request_of(req);
    if (r->connection == NULL)
        return false;
    if (r->conn == NULL || r->conn->fd < 0)
        return true; /* it is not watched */
    struct pollfd at = {r->conn->fd, POLLRDHUP, 0};
    return poll(&at, 1, 0) <= 0 || (at.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) == 0;
}

static bool is_late(struct conn *conn, int64_t now)
{
    switch (conn->phase) {
    case CONN_HEAD:
        return head_is_late(conn, now);
    case CONN_BODY:
        return now - conn->since_ms > HTTP_BODY_TIMEOUT_MS || has_hung_up(conn);
    case CONN_WORKING:
        return false; /* the engine has its own time-outs */
    case CONN_REPLY:
        if (conn->request != NULL && conn->request->streams)
            return !conn->request->suspended && now - conn->since_ms > HTTP_STREAM_STALL_MS;
        return !conn->streaming && now - conn->since_ms > HTTP_REPLY_TIMEOUT_MS;
    }
    assert(!"unknown phase");
    return false;
}

void conns_sweep(struct http_server *s)
{
    int64_t now = env_mono_ms(s->config.env);
    if (now < s->next_sweep_ms)
        return;
    s->next_sweep_ms = now + (s->draining ? SWEEP_MS / 20 : SWEEP_MS);
    for (struct conn *conn = s->conns; conn != NULL; conn = conn->next) {
        bool idle = s->draining && conn->phase == CONN_HEAD;
        /* libmicrohttpd sees the end of the stream and cleans up. */
        if (conn->fd >= 0 && (idle || is_late(conn, now)))
            (void)shutdown(conn->fd, SHUT_RDWR);
    }
}
