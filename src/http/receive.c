/* From bytes to a request for the handler. Head and body share one buffer: nothing is copied, and a
 * chunked body is decoded where it lies. */
#include "http/internal.h"

enum { DISCARDED_AT_ONCE = 64 * KIB };

/* --- refusing --- */

/* Answers instead of the handler; the connection ends with the answer, because what follows cannot
 * be understood. */
static bool refuse(struct conn *c, enum err e, const char *why, bool last)
{
    struct request *r = c->request;
    struct problem p;
    problem_init(&p);
    (void)problem_set(&p, e, "%s", why);
    r->complete = true;
    r->last |= last;
    if (r->pub.trace_id[0] == '\0')
        trace_set(r);
    r->in_handler = true;
    http_send_problem(&r->pub, &p, STR_NONE, NULL);
    r->in_handler = false;
    problem_release(&p);
    conn_enter(c, CONN_WORKING);
    return true;
}

static bool refuse_fault(struct conn *c, enum parse_fault fault)
{
    return refuse(c, parse_fault_err(fault), parse_fault_detail(fault), true);
}

/* --- the handler --- */

/* The bytes after a request belong to the next one. */
static bool keep_ahead(struct request *r, size_t end)
{
    size_t len = r->in_len - end;
    if (len == 0)
        return true;
    struct request *ahead = request_new(r->conn);
    if (ahead == NULL)
        return false;
    r->ahead = ahead;
    if (!request_reserve(ahead, MAX(len, (size_t)HTTP_READ_MIN)))
        return false;
    memcpy(ahead->in, r->in + end, len);
    ahead->in_len = len;
    r->in_len = end;
    return true;
}

static struct str path_of(const struct request *r)
{
    if (r->head.path.len > 0)
        return slice_str(r->in, r->head.path);
    return str_is(slice_str(r->in, r->head.method), "OPTIONS") ? STR("*") : STR("/");
}

/* OPTIONS *: about the server, not about a resource. */
static void answer_options(struct request *r)
{
    struct http_reply reply;
    http_reply_init(&reply, 204, STR(""), STR(""));
    http_reply_add(&reply, "Allow", STR("GET, HEAD, POST, PUT, DELETE, OPTIONS"));
    http_send(&r->pub, &reply);
}

static bool dispatch(struct conn *c)
{
    struct request *r = c->request;
    const struct http_config *config = &c->server->config;
    r->complete = true;
    r->pub.method = slice_str(r->in, r->head.method);
    r->pub.path = path_of(r);
    r->pub.query = slice_str(r->in, r->head.query);
    memcpy(r->peer, peer_text(c->peer), sizeof(r->peer));
    r->pub.peer = str_of(r->peer);
    trace_set(r);
    conn_enter(c, CONN_WORKING);
    if (!r->head.keep_alive)
        r->last = true;
    r->in_handler = true;
    if (str_is(r->pub.path, "*"))
        answer_options(r);
    else
        config->handler(config->handler_ctx, &r->pub);
    r->in_handler = false;
    return true;
}

/* `end` is where the request ends in the buffer. */
static bool complete(struct conn *c, size_t body_len, size_t end)
{
    struct request *r = c->request;
    if (!keep_ahead(r, end))
        return refuse(c, ERR_NO_MEMORY, "No memory for the next request", true);
    if (r->discards)
        return refuse(c, ERR_BODY_TOO_LARGE, parse_fault_detail(PARSE_LENGTH_LARGE),
                      !r->head.keep_alive);
    r->pub.body = (struct str){r->in + r->head.size, body_len};
    return dispatch(c);
}

/* --- the body --- */

enum progress { WAITS, GOES_ON, ENDS };

/* A body of known length. */
static bool take_sized(struct conn *c, enum progress *ret)
{
    struct request *r = c->request;
    size_t have = r->in_len - r->head.size;
    if (r->discards) {
        size_t taken = MIN(have, r->head.length - r->body_len);
        r->body_len += taken;
        memmove(r->in + r->head.size, r->in + r->head.size + taken, have - taken);
        r->in_len -= taken;
        have = r->body_len;
    }
    *ret = ENDS;
    if (have >= r->head.length)
        return complete(c, r->discards ? 0 : r->head.length,
                        r->head.size + (r->discards ? 0 : r->head.length));
    *ret = WAITS;
    return true;
}

static bool take_chunks(struct conn *c, enum progress *ret)
{
    struct request *r = c->request;
    size_t begin = r->head.size + r->body_len;
    size_t used = 0, data = 0;
    enum parse_status got = PARSE_MORE;
    if (r->in_len > begin)
        got = chunks_parse(&r->chunks, r->in + begin, r->in_len - begin, &used, &data);
    *ret = ENDS;
    if (got == PARSE_REFUSED)
        return refuse_fault(c, r->chunks.fault);
    r->discards |= r->chunks.total > HTTP_BODY_MAX;
    r->body_len = r->discards ? 0 : r->body_len + data;
    size_t end = r->head.size + r->body_len;
    memmove(r->in + end, r->in + begin + used, r->in_len - begin - used);
    r->in_len = end + (r->in_len - begin - used);
    if (got == PARSE_DONE)
        return complete(c, r->body_len, end);
    *ret = WAITS;
    return true;
}

static bool take_body(struct conn *c, enum progress *ret)
{
    return c->request->head.chunked ? take_chunks(c, ret) : take_sized(c, ret);
}

/* --- the head --- */

static bool say_continue(struct conn *c)
{
    struct str line = STR("HTTP/1.1 100 Continue\r\n\r\n");
    if (io_write(c, &line, 1) == (ssize_t)line.len)
        return true;
    conn_close(c); /* its buffers are full of answers that it does not read */
    return false;
}

static bool on_head(struct conn *c)
{
    struct request *r = c->request;
    const struct head *h = &r->head;
    bool has_body = h->chunked || h->length > 0;
    conn_enter(c, CONN_BODY);
    chunks_begin(&r->chunks);
    r->discards = h->length > HTTP_BODY_MAX;
    if (h->expects_100 && r->discards)
        return refuse_fault(c, PARSE_LENGTH_LARGE);
    if (h->expects_100 && has_body && r->in_len == h->size)
        return say_continue(c);
    return true;
}

static bool take_head(struct conn *c, enum progress *ret)
{
    struct request *r = c->request;
    if (c->phase == CONN_IDLE)
        conn_enter(c, CONN_HEAD);
    *ret = WAITS;
    if (r->in_len == 0)
        return true;
    enum parse_status got = head_parse(&r->head, r->in, r->in_len);
    if (got == PARSE_MORE)
        return true;
    bool ok = got == PARSE_DONE ? on_head(c) : refuse_fault(c, r->head.fault);
    *ret = c->phase == CONN_BODY ? GOES_ON : ENDS;
    return ok;
}

/* --- reading --- */

/* Room for what may come next: the rest of the head, or of the body. A claimed length is not
 * believed: memory grows with what arrives. */
static size_t room_for(const struct request *r, const struct conn *c)
{
    if (c->phase == CONN_BODY && r->discards)
        return MAX(r->in_cap, (size_t)DISCARDED_AT_ONCE);
    if (r->in_len < r->in_cap)
        return r->in_cap;
    size_t doubled = MAX(2 * r->in_cap, (size_t)HTTP_READ_MIN);
    if (c->phase != CONN_BODY)
        return MIN(doubled, (size_t)HTTP_HEAD_MAX);
    return r->head.chunked ? doubled : MIN(doubled, (size_t)r->head.size + r->head.length);
}

/* How much may be read: of a body of known length no byte too many. */
static size_t wanted(const struct request *r, const struct conn *c)
{
    size_t room = r->in_cap - r->in_len;
    if (c->phase != CONN_BODY || r->head.chunked)
        return room;
    size_t have = r->discards ? r->body_len : r->in_len - r->head.size;
    return MIN(room, r->head.length - have);
}

static bool end_of_input(struct conn *c)
{
    conn_close(c);
    return false;
}

/* The first byte may have been announced, but not come. */
static bool nothing_yet(struct conn *c)
{
    struct request *r = c->request;
    if (r->in_len > 0 || c->phase == CONN_BODY)
        return false;
    c->request = NULL;
    request_over(r);
    return false;
}

static bool read_more(struct conn *c)
{
    struct request *r = c->request;
    if (!c->readable)
        return nothing_yet(c);
    if (!request_reserve(r, room_for(r, c)))
        return end_of_input(c);
    ssize_t got = io_read(c, r->in + r->in_len, wanted(r, c));
    if (got == IO_AGAIN)
        return c->readable ? true : nothing_yet(c);
    if (got == IO_PLAIN)
        return refuse(c, ERR_BAD_REQUEST, "This port speaks TLS: use https://", true);
    if (got <= 0)
        return end_of_input(c);
    r->in_len += (size_t)got;
    c->moved += (uint64_t)got;
    return true;
}

/* Parses what is there; WAITS: more is needed. */
static bool take(struct conn *c, enum progress *ret)
{
    *ret = GOES_ON;
    while (*ret == GOES_ON) {
        bool ok = c->phase == CONN_BODY ? take_body(c, ret) : take_head(c, ret);
        if (!ok)
            return false;
    }
    return true;
}

bool receive(struct conn *c)
{
    if (c->request == NULL) {
        if (!c->readable)
            return false;
        c->request = request_new(c);
        if (c->request == NULL)
            return end_of_input(c);
    }
    enum progress progress = WAITS;
    if (c->request->in_len > 0 && !take(c, &progress))
        return false;
    return progress == ENDS || read_more(c);
}
