/* How answers are sent: plain, or a file. */
#include "http/mhd/internal.h"

#include <sys/stat.h>
#include <unistd.h>

bool http_is_answered(const struct http_request *req)
{
    return request_of(req)->answered;
}

void http_send(struct http_request *req, const struct http_reply *reply)
{
    struct request *r = request_of(req);
    assert(!r->answered);
    r->answered = true;
    r->reply = *reply;
    if (r->connection == NULL) {
        if (reply->file_fd > 0)
            close(reply->file_fd);
        return; /* the client has gone; its change was made anyway */
    }
    reply_resume(r); /* the handler is called again and queues it */
}

void http_hang_up(struct http_request *req)
{
    struct request *r = request_of(req);
    assert(!r->answered);
    r->answered = r->hung_up = true;
    reply_resume(r);
}

void reply_resume(struct request *r)
{
    if (!r->suspended || r->connection == NULL)
        return;
    r->suspended = false;
    MHD_resume_connection(r->connection);
}

static struct MHD_Response *response_of(struct request *r)
{
    const struct http_reply *reply = &r->reply;
    if (r->streams)
        return stream_response(r);
    if (reply->file_fd > 0) {
        struct stat info;
        if (fstat(reply->file_fd, &info) != 0)
            return NULL;
        return MHD_create_response_from_fd64((uint64_t)info.st_size, reply->file_fd);
    }
    return __real_MHD_create_response_from_buffer(
        reply->body.len, (void *)(uintptr_t)reply->body.ptr, MHD_RESPMEM_PERSISTENT);
}

/* No cache may keep an answer, and no browser may guess its type. */
void reply_add_constants(struct MHD_Response *response)
{
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
}

enum MHD_Result reply_queue(struct request *r)
{
    const struct http_reply *reply = &r->reply;
    struct MHD_Response *response = r->hung_up ? NULL : response_of(r);
    if (response == NULL)
        return MHD_NO;
    if (reply->content_type.len > 0)
        (void)MHD_add_response_header(response, "Content-Type", reply->content_type.ptr);
    (void)MHD_add_response_header(response, "X-Trace-Id", r->pub.trace_id);
    reply_add_constants(response);
    for (size_t i = 0; i < reply->header_count; i++) {
        if (reply->headers[i].value.len > 0)
            (void)MHD_add_response_header(response, reply->headers[i].name,
                                          reply->headers[i].value.ptr);
    }
    if (r->server->draining || r->last)
        (void)MHD_add_response_header(response, "Connection", "close");
    if (r->conn != NULL) {
        conn_enter(r->server, r->conn, CONN_REPLY);
        r->conn->streaming = reply->file_fd > 0 || r->streams;
    }
    r->queued = true;
    enum MHD_Result ok = MHD_queue_response(r->connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return ok;
}
