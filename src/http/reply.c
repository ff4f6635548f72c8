/* Answers: the head is rendered in the request's memory, then sent together with the body. A small
 * body is copied behind the head, which costs less than sending two parts; a large one is not. */
#include "http/internal.h"

#include "base/digits.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILLS_PER_TURN_MAX = 16, /* of one stream, before others get their turn */
    BODY_COPIED_MAX = 4 * KIB,
};

/* --- rendering --- */

/* A head of known length, written front to back. */
struct out {
    char *at;
    char *end;
};

/* Inline: most pieces are constants, which take a few moves then. */
static inline void put(struct out *o, struct str s)
{
    assert((size_t)(o->end - o->at) >= s.len);
    memcpy(o->at, s.ptr, s.len);
    o->at += s.len;
}

static void put_number(struct out *o, int64_t number)
{
    char digits[DIGITS_MAX];
    put(o, (struct str){digits, (size_t)(digits_put(digits, number) - digits)});
}

/* RFC 9110 15. Clients go by the number; these are for people. */
static struct str reason_of(int status)
{
    switch (status) {
    case 200:
        return STR("OK");
    case 201:
        return STR("Created");
    case 202:
        return STR("Accepted");
    case 204:
        return STR("No Content");
    case 304:
        return STR("Not Modified");
    case 308:
        return STR("Permanent Redirect");
    case 400:
        return STR("Bad Request");
    case 401:
        return STR("Unauthorized");
    case 403:
        return STR("Forbidden");
    case 404:
        return STR("Not Found");
    case 405:
        return STR("Method Not Allowed");
    case 409:
        return STR("Conflict");
    case 412:
        return STR("Precondition Failed");
    case 413:
        return STR("Content Too Large");
    case 414:
        return STR("URI Too Long");
    case 415:
        return STR("Unsupported Media Type");
    case 417:
        return STR("Expectation Failed");
    case 421:
        return STR("Misdirected Request");
    case 422:
        return STR("Unprocessable Content");
    case 429:
        return STR("Too Many Requests");
    case 431:
        return STR("Request Header Fields Too Large");
    case 500:
        return STR("Internal Server Error");
    case 503:
        return STR("Service Unavailable");
    case 505:
        return STR("HTTP Version Not Supported");
    default:
        return STR("");
    }
}

/* The same text for all answers of a second. */
static struct str date_field(struct http_server *s)
{
    static const char DAYS[] = "SunMonTueWedThuFriSat";
    static const char MONTHS[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = (time_t)(env_now_ms(s->config.env) / 1000);
    if (now != s->date_s) {
        struct tm t;
        (void)gmtime_r(&now, &t);
        (void)snprintf(s->date, sizeof(s->date),
                       "Date: %.3s, %02d %.3s %04d %02d:%02d:%02d GMT\r\n", DAYS + 3 * t.tm_wday,
                       t.tm_mday % 100, MONTHS + 3 * t.tm_mon, (t.tm_year + 1900) % 10000,
                       t.tm_hour % 100, t.tm_min % 100, t.tm_sec % 100);
        s->date_s = now;
    }
    return (struct str){s->date, sizeof("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n") - 1};
}

#define NOT_STORED "Cache-Control: no-store\r\n"
#define CONSTANTS "X-Content-Type-Options: nosniff\r\nX-Trace-Id: "

enum {
    FRAME_MAX = 256 + sizeof(NOT_STORED CONSTANTS)
}; /* status line, date and fields of a known length */

static size_t size_of_head(const struct http_reply *reply)
{
    size_t size = FRAME_MAX + reply->content_type.len + reply->cache_control.len;
    for (size_t i = 0; i < reply->header_count; i++)
        size += strlen(reply->headers[i].name) + reply->headers[i].value.len + 4;
    return size;
}

static bool has_content(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

static void put_caching(struct out *o, const struct http_reply *reply)
{
    if (reply->cache_control.len == 0) {
        put(o, STR(NOT_STORED));
        return;
    }
    put(o, STR("Cache-Control: "));
    put(o, reply->cache_control);
    put(o, STR("\r\n"));
}

/* How the client knows where the content ends. */
static void put_framing(struct out *o, const struct request *r, uint64_t length)
{
    if (r->chunked_reply)
        put(o, STR("Transfer-Encoding: chunked\r\n"));
    if (r->streams || !has_content(r->status))
        return;
    put(o, STR("Content-Length: "));
    put_number(o, (int64_t)length);
    put(o, STR("\r\n"));
}

static void put_connection(struct out *o, const struct request *r)
{
    if (r->last)
        put(o, STR("Connection: close\r\n"));
    else if (r->head.is_1_0)
        put(o, STR("Connection: keep-alive\r\n"));
}

static void put_fields(struct out *o, const struct http_reply *reply)
{
    if (reply->content_type.len > 0) {
        put(o, STR("Content-Type: "));
        put(o, reply->content_type);
        put(o, STR("\r\n"));
    }
    for (size_t i = 0; i < reply->header_count; i++) {
        if (reply->headers[i].value.len == 0)
            continue;
        put(o, str_of(reply->headers[i].name));
        put(o, STR(": "));
        put(o, reply->headers[i].value);
        put(o, STR("\r\n"));
    }
}

/* The head, and `body` behind it. */
static struct str render(struct request *r, const struct http_reply *reply, uint64_t length,
                         struct str body)
{
    size_t size = size_of_head(reply) + body.len;
    char *text = arena_room(&r->pub.arena, size);
    if (text == NULL)
        return STR_NONE;
    struct out o = {text, text + size};
    put(&o, STR("HTTP/1.1 "));
    put_number(&o, reply->status);
    put(&o, STR(" "));
    put(&o, reason_of(reply->status));
    put(&o, STR("\r\n"));
    put(&o, date_field(r->server));
    put_fields(&o, reply);
    put_framing(&o, r, length);
    put_connection(&o, r);
    put_caching(&o, reply);
    put(&o, STR(CONSTANTS));
    put(&o, str_of(r->pub.trace_id));
    put(&o, STR("\r\n\r\n"));
    put(&o, body);
    return (struct str){text, (size_t)(o.at - text)};
}

static bool is_head(const struct request *r)
{
    return str_is(r->pub.method, "HEAD");
}

/* The length of the content that is not streamed; -1: it cannot be told. */
static int64_t content_length(struct request *r, const struct http_reply *reply)
{
    struct stat info;
    if (is_head(r) && reply->head_len > 0)
        return reply->head_len;
    if (r->file_fd < 0)
        return (int64_t)reply->body.len;
    return fstat(r->file_fd, &info) == 0 ? info.st_size : -1;
}

bool reply_begin(struct request *r, const struct http_reply *reply)
{
    r->status = reply->status;
    r->route = reply->route;
    r->last |= r->server->draining || (r->streams && r->head.is_1_0);
    r->chunked_reply = r->streams && !r->head.is_1_0;
    int64_t length = content_length(r, reply);
    bool body = has_content(r->status) && !is_head(r) && !r->streams;
    struct str sent = body && r->file_fd < 0 ? reply->body : STR("");
    bool copied = sent.len <= BODY_COPIED_MAX;
    struct str head =
        length < 0 ? STR_NONE : render(r, reply, (uint64_t)length, copied ? sent : STR(""));
    if (head.ptr == NULL)
        return false;
    r->parts[r->part_count++] = head;
    if (!copied)
        r->parts[r->part_count++] = sent;
    r->file_left = body && r->file_fd >= 0 ? length : 0;
    return true;
}

/* --- the handler's side --- */

/* There is no connection any more: the next turn ends it. */
static void orphan(struct request *r)
{
    if (r->file_fd >= 0)
        close(r->file_fd);
    r->file_fd = -1;
    r->next_orphan = r->server->orphans;
    r->server->orphans = r;
}

static void wake(struct request *r)
{
    if (r->conn == NULL)
        orphan(r);
    else if (!r->in_handler)
        conn_wake(r->conn);
}

void http_send(struct http_request *req, const struct http_reply *reply)
{
    struct request *r = request_of(req);
    assert(!r->answered);
    r->answered = true;
    r->file_fd = reply->file_fd > 0 ? reply->file_fd : -1;
    if (!reply_begin(r, reply))
        r->hung_up = true; /* no memory: the client sees that the answer is missing */
    wake(r);
}

void http_hang_up(struct http_request *req)
{
    struct request *r = request_of(req);
    assert(!r->answered);
    r->answered = r->hung_up = true;
    wake(r);
}

void http_cut(struct http_request *req)
{
    struct request *r = request_of(req);
    assert(r->answered);
    r->hung_up = true;
    if (r->conn != NULL)
        conn_wake(r->conn);
}

/* Bounds what waits in the kernel, and how long a dead link goes unnoticed. The stream works
 * without either. */
static void bound_socket(const struct conn *c)
{
    int bytes = HTTP_STREAM_SOCKET_BYTES;
    unsigned ms = HTTP_STREAM_STALL_MS;
    (void)setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

void http_send_stream(struct http_request *req, const struct http_reply *reply,
                      const struct http_source *source)
{
    struct request *r = request_of(req);
    r->streams = true;
    r->source = source;
    if (r->conn != NULL)
        bound_socket(r->conn);
    http_send(req, reply);
}

void http_stream_wake(struct http_request *req)
{
    struct request *r = request_of(req);
    if (r->conn != NULL)
        conn_wake(r->conn);
}

/* --- sending --- */

static void took(struct request *r, size_t sent)
{
    while (r->part_count > 0 && sent >= r->parts[0].len) {
        sent -= r->parts[0].len;
        r->part_count--;
        memmove(&r->parts[0], &r->parts[1], r->part_count * sizeof(r->parts[0]));
    }
    if (r->part_count > 0) {
        r->parts[0].ptr += sent;
        r->parts[0].len -= sent;
    }
}

static bool broken(struct conn *c)
{
    conn_close(c);
    return false;
}

static bool send_parts(struct conn *c)
{
    struct request *r = c->request;
    while (r->part_count > 0) {
        if (!c->writable)
            return false;
        ssize_t sent = io_write(c, r->parts, r->part_count);
        if (sent == IO_BROKEN)
            return broken(c);
        took(r, sent > 0 ? (size_t)sent : 0);
        c->moved += sent > 0 ? (uint64_t)sent : 0;
    }
    return true;
}

static bool send_file(struct conn *c)
{
    struct request *r = c->request;
    while (r->file_left > 0) {
        if (!c->writable)
            return false;
        ssize_t sent = io_send_file(c, r->file_fd, r->file_at, r->file_left);
        if (sent == IO_BROKEN)
            return broken(c);
        r->file_at += sent > 0 ? sent : 0;
        r->file_left -= sent > 0 ? sent : 0;
        c->moved += sent > 0 ? (uint64_t)sent : 0;
    }
    return true;
}

/* What the client did not take is kept until it does. */
static bool keep_rest(struct conn *c)
{
    bool kept = c->phase == CONN_CLOSED || stream_keep(c->request);
    return kept ? false : broken(c);
}

/* Piece after piece, until the client or the source has to be waited for. */
static bool send_stream(struct conn *c)
{
    struct request *r = c->request;
    for (int fills = 0; !r->ended; fills++) {
        if (fills == FILLS_PER_TURN_MAX) {
            conn_wake(c);
            return false;
        }
        enum http_piece got = stream_fill(r);
        if (got == HTTP_BROKEN)
            return broken(c);
        conn_enter(c, got == HTTP_LATER ? CONN_WORKING : CONN_REPLY); /* its time begins again */
        if (got == HTTP_LATER)
            return false;
        if (!send_parts(c))
            return keep_rest(c);
    }
    return true;
}

bool reply_send(struct conn *c)
{
    struct request *r = c->request;
    if (r->streams && c->half_closed)
        return broken(c); /* its client is taken to be gone */
    if (!send_parts(c) || !send_file(c))
        return false;
    return !r->streams || is_head(r) || send_stream(c);
}
