/* Replies that go on: server-sent events. What is written waits in a bounded buffer until the
 * client takes it; a connection with nothing to send is suspended. */
#include "http/internal.h"

#include <sys/socket.h>

enum { STREAM_BLOCK = 4 * KIB };

static ssize_t read_unsent(void *ctx, uint64_t pos, char *out, size_t max)
{
    struct request *r = ctx;
    (void)pos;
    size_t count = MIN(r->unsent.len - r->unsent_from, max);
    if (count > 0) {
        memcpy(out, r->unsent.ptr + r->unsent_from, count);
        r->unsent_from += count;
        if (r->unsent_from == r->unsent.len) {
            buf_clear(&r->unsent);
            r->unsent_from = 0;
        }
        return (ssize_t)count;
    }
    if (r->stream_ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    r->suspended = true;
    MHD_suspend_connection(r->connection);
    r->stream_taken(r->pub.user);
    return 0;
}

struct MHD_Response *stream_response(struct request *r)
{
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_unsent, r, NULL);
}

void stream_over(struct request *r)
{
    void (*gone)(void *user) = r->stream_gone;
    r->stream_gone = NULL;
    buf_release(&r->unsent);
    if (gone != NULL)
        gone(r->pub.user);
}

void http_send_stream(struct http_request *req, const struct http_reply *reply,
                      void (*taken)(void *user), void (*gone)(void *user))
{
    struct request *r = request_of(req);
    r->streams = true;
    r->stream_taken = taken;
    r->stream_gone = gone;
    buf_init(&r->unsent, HTTP_REPLY_MAX);
    http_send(req, reply);
    if (r->connection == NULL)
        stream_over(r); /* the client did not wait for the first word */
}

bool http_stream_write(struct http_request *req, struct str text)
{
    struct request *r = request_of(req);
    if (r->connection == NULL || r->stream_ended)
        return false;
    if (r->unsent_from > 0) { /* make room behind what was sent */
        memmove(r->unsent.ptr, r->unsent.ptr + r->unsent_from, r->unsent.len - r->unsent_from);
        r->unsent.len -= r->unsent_from;
        r->unsent_from = 0;
    }
    bool fits = r->unsent.len == 0 || r->unsent.len + text.len <= HTTP_STREAM_BEHIND_MAX;
    if (fits)
        buf_put(&r->unsent, text);
    if (!fits || !buf_ok(&r->unsent)) {
        r->stream_ended = true;
        if (r->conn != NULL && r->conn->fd >= 0)
            (void)shutdown(r->conn->fd, SHUT_RDWR);
        reply_resume(r);
        return false;
    }
    reply_resume(r);
    return true;
}

void http_stream_end(struct http_request *req)
{
    struct request *r = request_of(req);
    r->stream_ended = true;
    reply_resume(r);
}
