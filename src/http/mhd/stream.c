/* Replies that go on: server-sent events, exports. Text is fetched as the client takes it; a
 * connection with nothing to send is suspended. */
#include "http/mhd/internal.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { STREAM_BLOCK = 4 * KIB };

/* The client has read the last piece, or there is a new one: its time limit starts again. */
static void note_progress(struct request *r)
{
    if (r->conn != NULL)
        r->conn->since_ms = env_mono_ms(r->server->config.env);
}

static ssize_t read_source(void *ctx, uint64_t pos, char *out, size_t max)
{
    struct request *r = ctx;
    size_t count = 0;
    (void)pos;
    note_progress(r);
    while (count < max) {
        if (r->unsent.len == 0) {
            enum http_piece got = r->source->next(r->pub.user, &r->unsent);
            if (got == HTTP_PIECE)
                continue;
            if (count > 0)
                break; /* reported again next time */
            if (got == HTTP_END)
                return MHD_CONTENT_READER_END_OF_STREAM;
            if (got == HTTP_BROKEN)
                return MHD_CONTENT_READER_END_WITH_ERROR;
            r->suspended = true;
            MHD_suspend_connection(r->connection);
            return 0;
        }
        size_t n = MIN(r->unsent.len, max - count);
        memcpy(out + count, r->unsent.ptr, n);
        r->unsent.ptr += n;
        r->unsent.len -= n;
        count += n;
    }
    return (ssize_t)count;
}

struct MHD_Response *stream_response(struct request *r)
{
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_source, r, NULL);
}

void stream_over(struct request *r)
{
    const struct http_source *source = r->source;
    r->source = NULL;
    if (source != NULL)
        source->gone(r->pub.user);
}

/* Bounds what waits in the kernel, and how long a dead link goes unnoticed. The stream works
 * without either. */
static void bound_socket(const struct conn *conn)
{
    int bytes = HTTP_STREAM_SOCKET_BYTES;
    unsigned ms = HTTP_STREAM_STALL_MS;
    (void)setsockopt(conn->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

void http_send_stream(struct http_request *req, const struct http_reply *reply,
                      const struct http_source *source)
{
    struct request *r = request_of(req);
    r->streams = true;
    r->source = source;
    if (r->conn != NULL && r->conn->fd >= 0)
        bound_socket(r->conn);
    http_send(req, reply);
    if (r->connection == NULL)
        stream_over(r); /* the client left before the first event */
}

void http_stream_wake(struct http_request *req)
{
    struct request *r = request_of(req);
    if (r->suspended)
        note_progress(r);
    reply_resume(r);
}
