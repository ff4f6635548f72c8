/* One request that another node answers. */
#include "cluster/forward.h"

#include "api/tracing.h"
#include "base/limits.h"

enum forward_mode {
    MODE_OPEN,    /* nothing has come yet */
    MODE_WHOLE,   /* the answer is sent when it is there */
    MODE_STREAM,  /* the answer is sent as it comes */
    MODE_REFUSED, /* the node has not taken it */
};

static void on_news(struct node_call *call);
static void finish(struct forward *f);

static bool is_one_of(struct str name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq_nocase(name, str_of(names[i])))
            return true;
    }
    return false;
}

/* Those of one connection (RFC 9110, 7.6.1). */
static const char *const HOP_HEADERS[] = {
    "Connection", "Keep-Alive", "Proxy-Connection",  "TE",
    "Trailer",    "Upgrade",    "Transfer-Encoding", "Content-Length",
};

/* --- the request --- */

/* What says who sends it: the token does that now. */
static const char *const CALLER_HEADERS[] = {"Authorization", "X-API-Key", "X-Tenant-ID", "X-Actor",
                                             "Cookie"};
static const char *const NODE_HEADERS[] = {FORWARDED_HEADER, NOT_TAKEN_HEADER, NEW_TRACE_HEADER,
                                           "Expect", "traceparent"};

/* A header that the client says is for this connection only. */
static bool is_of_connection(struct str connection, struct str name)
{
    while (connection.len > 0) {
        struct str option;
        (void)str_cut(connection, ',', &option, &connection);
        if (str_eq_nocase(str_trim(option), name))
            return true;
    }
    return false;
}

static bool travels(const struct forward *f, struct str connection, struct str name)
{
    if (str_eq_nocase(name, STR("tracestate")))
        return f->req->traceparent.ptr != NULL;
    if (!f->keeps_credentials && is_one_of(name, CALLER_HEADERS, ARRAY_LEN(CALLER_HEADERS)))
        return false;
    return !is_one_of(name, HOP_HEADERS, ARRAY_LEN(HOP_HEADERS)) &&
           !is_one_of(name, NODE_HEADERS, ARRAY_LEN(NODE_HEADERS)) &&
           !is_of_connection(connection, name);
}

/* The caller's, as the client sent it. Without one a trace begins with the span of this node: the
 * owner makes none of its own for a request that a node has sent. */
static struct str trace_of(struct http_request *req)
{
    if (req->traceparent.ptr != NULL)
        return req->traceparent;
    char text[TRACEPARENT_LEN + 1];
    struct trace_span span = request_span(req);
    trace_write(&span, text);
    return arena_str(&req->arena, str_of(text));
}

static bool fill_headers(struct forward *f)
{
    struct http_request *req = f->req;
    struct str connection = http_header_list(req, "Connection");
    struct str trace = trace_of(req);
    struct node_header *headers =
        arena_alloc(&req->arena, (HTTP_FIELDS_MAX + 3) * sizeof(*headers));
    if (headers == NULL || trace.ptr == NULL)
        return false;
    size_t count = 0;
    size_t at = 0;
    struct http_param header;
    while (http_header_next(req, &at, &header)) {
        if (travels(f, connection, header.name))
            headers[count++] = (struct node_header){header.name, header.value};
    }
    headers[count++] = (struct node_header){STR("traceparent"), trace};
    if (req->traceparent.ptr == NULL)
        headers[count++] = (struct node_header){STR(NEW_TRACE_HEADER), STR("1")};
    headers[count++] = (struct node_header){STR(FORWARDED_HEADER), f->token};
    f->call.headers = headers;
    f->call.header_count = count;
    return true;
}

static bool fill_target(struct forward *f)
{
    struct http_request *req = f->req;
    struct buf target;
    buf_init(&target, HTTP_LINE_MAX);
    struct str query = f->query.ptr != NULL ? f->query : req->query;
    buf_put(&target, req->path);
    if (query.len > 0) {
        buf_put_char(&target, '?');
        buf_put(&target, query);
    }
    f->call.target = arena_take(&req->arena, &target).ptr;
    struct str method = f->method.ptr != NULL ? f->method : req->method;
    f->call.method = arena_str(&req->arena, method).ptr;
    return f->call.target != NULL && f->call.method != NULL;
}

/* --- the client --- */

/* An answer that is on its way is waited for if somebody has to know what is lost with it. */
static void on_disconnected(void *user)
{
    struct forward *f = user;
    f->gone = true;
    if (f->part_over)
        finish(f); /* no more news will come */
    else if (!f->call_over && (f->lost == NULL || f->mode != MODE_WHOLE))
        node_call_cancel(&f->call);
}

/* The connection has ended within the answer. */
static void on_unsent(void *user)
{
    struct forward *f = user;
    f->lost(f, buf_str(&f->piece));
}

static void release(struct forward *f)
{
    buf_release(&f->piece);
    if (f->call.client != NULL)
        node_call_release(&f->call);
    f->call.client = NULL;
}

static void on_cleanup(void *user)
{
    release(user);
}

static void fill_call(struct forward *f)
{
    f->call = (struct node_call){
        .url = f->url,
        .body = f->body.ptr != NULL ? f->body : f->req->body,
        .repeatable = f->repeatable,
        .head_ms = f->takes_long ? 0 : NODE_HEAD_MS,
        .news = on_news,
        .owner = f,
    };
}

/* A stream has been passed on whole. */
static enum http_piece next_part(struct forward *f)
{
    f->part_over = false;
    f->follows = true;
    node_call_release(&f->call);
    f->call.client = NULL;
    enum forward_more more = f->more(f);
    if (more == FORWARD_NEXT) {
        fill_call(f);
        if (fill_target(f) && fill_headers(f)) {
            node_call_begin(f->client, &f->call);
            return HTTP_LATER;
        }
        more = FORWARD_BROKEN;
    }
    finish(f);
    return more == FORWARD_END ? HTTP_END : HTTP_BROKEN;
}

/* The client has a head already: whatever follows is a stream too, or nothing. */
static bool is_refused(struct forward *f)
{
    struct str ignored;
    int status = node_call_head(&f->call, &ignored);
    return f->follows && status != 0 && status != 200;
}

static enum http_piece next_piece(void *user, struct str *ret)
{
    struct forward *f = user;
    if (f->call.client == NULL || is_refused(f))
        return HTTP_BROKEN;
    enum node_end end = node_call_end(&f->call); /* first: what comes before it is not missed */
    buf_clear(&f->piece);
    node_call_take(&f->call, &f->piece);
    if (!buf_ok(&f->piece))
        return HTTP_BROKEN;
    *ret = buf_str(&f->piece);
    if (f->piece.len > 0)
        return HTTP_PIECE;
    if (end == NODE_UNDER_WAY)
        return HTTP_LATER;
    if (f->part_over)
        return next_part(f);
    if (f->more != NULL && end == NODE_ANSWERED)
        return HTTP_LATER; /* the news of it are on their way */
    return end == NODE_ANSWERED || f->ends_well ? HTTP_END : HTTP_BROKEN;
}

static const struct http_source SOURCE = {next_piece, on_disconnected};

/* --- the response --- */

/* The server adds its own. */
static const char *const OWN_HEADERS[] = {
    "Date",         "X-Content-Type-Options", "X-Trace-Id",
    "Content-Type", "Cache-Control",          NOT_TAKEN_HEADER,
};

struct response {
    struct http_reply reply;
    int64_t length; /* -1: not said */
    struct str not_taken;
    bool ok; /* false: memory ran out */
};

static struct str keep(struct forward *f, struct response *r, struct str text)
{
    struct str kept = arena_str(&f->req->arena, text);
    r->ok &= kept.ptr != NULL;
    return kept;
}

static void read_header(struct forward *f, struct response *r, struct str name, struct str value)
{
    if (str_eq_nocase(name, STR("Content-Type")))
        r->reply.content_type = keep(f, r, value);
    else if (str_eq_nocase(name, STR("Cache-Control")))
        r->reply.cache_control = keep(f, r, value);
    else if (str_eq_nocase(name, STR(NOT_TAKEN_HEADER)))
        r->not_taken = value;
    else if (str_eq_nocase(name, STR("Content-Length")) && !str_to_i64(value, &r->length))
        r->length = -1;
    if (!is_one_of(name, OWN_HEADERS, ARRAY_LEN(OWN_HEADERS)) &&
        !is_one_of(name, HOP_HEADERS, ARRAY_LEN(HOP_HEADERS)) &&
        r->reply.header_count < HTTP_REPLY_HEADERS_MAX) {
        const char *kept = keep(f, r, name).ptr;
        http_reply_add(&r->reply, kept, keep(f, r, value));
    }
}

static struct response read_head(struct forward *f, int status, struct str head)
{
    struct response r = {.length = -1, .ok = true};
    http_reply_init(&r.reply, status, STR(""), STR(""));
    r.reply.route = f->route;
    while (head.len > 0 && r.ok) {
        struct str line;
        struct str name;
        struct str value;
        (void)str_cut(head, '\n', &line, &head);
        if (str_cut(line, ':', &name, &value))
            read_header(f, &r, name, str_trim(value));
    }
    return r;
}

static bool asks_for_head(const struct forward *f)
{
    return str_is(f->req->method, "HEAD") && f->method.ptr == NULL;
}

static bool keeps_whole(const struct forward *f)
{
    return f->collects || f->lost != NULL;
}

static void choose_mode(struct forward *f, int status, struct str head)
{
    struct response r = read_head(f, status, head);
    bool empty = status == 204 || status == 304;
    int64_t whole_max = keeps_whole(f) ? HTTP_REPLY_MAX : NODE_BUFFER_MAX;
    f->mode = empty || (r.length >= 0 && r.length <= whole_max) ? MODE_WHOLE : MODE_STREAM;
    if (asks_for_head(f) && r.length >= 0)
        f->mode = MODE_WHOLE; /* however long the body of GET is */
    if (r.not_taken.ptr != NULL) {
        f->mode = MODE_REFUSED;
        (void)snprintf(f->reason, sizeof(f->reason), "%.*s", STR_ARG(r.not_taken));
    } else if (f->mode == MODE_STREAM && !f->gone) {
        if (r.ok) {
            http_send_stream(f->req, &r.reply, &SOURCE);
            return;
        }
        http_hang_up(f->req);
        on_disconnected(f);
    }
}

/* Makes room for more of a whole answer. */
static void collect(struct forward *f)
{
    struct buf more;
    buf_init(&more, 2 * NODE_BUFFER_MAX);
    node_call_take(&f->call, &more);
    buf_put(&f->piece, buf_str(&more));
    f->piece.failed |= more.failed;
    buf_release(&more);
}

/* False: the client is not to have it. */
static bool send_whole(struct forward *f)
{
    struct str head;
    int status = node_call_head(&f->call, &head);
    struct response r = read_head(f, status, head);
    collect(f);
    r.reply.body = f->piece.len > 0 ? buf_str(&f->piece) : STR("");
    if (asks_for_head(f))
        r.reply.head_len = r.length;
    if (f->passes != NULL && buf_ok(&f->piece) && !f->passes(f, &r.reply))
        return false;
    f->req->unsent = f->lost != NULL ? on_unsent : NULL;
    if (r.ok && buf_ok(&f->piece))
        http_send(f->req, &r.reply);
    else
        http_hang_up(f->req);
    return true;
}

/* --- the end --- */

/* The client has left before the answer was there. */
static void note_loss(struct forward *f)
{
    if (f->lost == NULL || f->mode != MODE_WHOLE || f->end != NODE_ANSWERED)
        return;
    collect(f);
    f->lost(f, buf_str(&f->piece));
}

/* A client that has left needs no answer, but the request does. */
static enum forward_end conclude(struct forward *f)
{
    if (http_is_answered(f->req))
        return FORWARD_ANSWERED;
    if (f->gone) {
        note_loss(f);
        http_hang_up(f->req);
        return FORWARD_ANSWERED;
    }
    if (f->mode == MODE_REFUSED || f->end == NODE_UNREACHED)
        return FORWARD_NOT_TAKEN;
    if (f->end != NODE_ANSWERED)
        return FORWARD_UNKNOWN;
    return send_whole(f) ? FORWARD_ANSWERED : FORWARD_SKIPPED;
}

/* The request is somebody else's from here on. */
static void let_go(struct forward *f)
{
    release(f);
    f->req->user = NULL;
    f->req->disconnected = NULL;
    f->req->cleanup = NULL;
}

static void finish(struct forward *f)
{
    struct http_request *req = f->req;
    f->part_over = false;
    f->call_over = true;
    enum forward_end end = conclude(f);
    if (end != FORWARD_ANSWERED)
        let_go(f);
    f->over(f, end); /* which may begin it again */
    http_request_drop(req);
}

static void on_news(struct node_call *call)
{
    struct forward *f = call->owner;
    struct str head;
    f->end = node_call_end(call); /* first: what comes before it is not missed */
    int status = node_call_head(call, &head);
    if (status != 0 && f->mode == MODE_OPEN)
        choose_mode(f, status, head);
    bool streams = f->mode == MODE_STREAM && !f->gone;
    f->part_over = streams && f->end == NODE_ANSWERED && f->more != NULL;
    bool goes_on = f->part_over || f->end == NODE_UNDER_WAY;
    if (f->mode == MODE_WHOLE && goes_on)
        collect(f);
    if (streams)
        http_stream_wake(f->req); /* which may ask for the next part */
    if (!goes_on)
        finish(f);
}

void forward_begin(struct forward *f)
{
    assert(f->call.client == NULL);
    buf_init(&f->piece, keeps_whole(f) ? HTTP_REPLY_MAX : 2 * NODE_BUFFER_MAX);
    f->mode = MODE_OPEN;
    f->call_over = f->follows = false;
    f->reason[0] = '\0';
    fill_call(f);
    f->req->user = f;
    f->req->disconnected = on_disconnected;
    f->req->unsent = NULL;
    f->req->cleanup = on_cleanup;
    http_request_hold(f->req); /* until finish() */
    if (!fill_target(f) || !fill_headers(f)) {
        (void)snprintf(f->call.error, sizeof(f->call.error), "The server is out of memory");
        f->end = NODE_UNREACHED;
        finish(f);
        return;
    }
    node_call_begin(f->client, &f->call);
}

void forward_cancel(struct forward *f)
{
    if (!f->call_over)
        node_call_cancel(&f->call);
}

bool forward_is_waiting(const struct forward *f)
{
    return !f->call_over && f->mode == MODE_OPEN;
}

const char *forward_error(const struct forward *f)
{
    return f->mode == MODE_REFUSED ? f->reason : node_call_error(&f->call);
}
