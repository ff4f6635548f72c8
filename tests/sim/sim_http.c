/* src/http/http.h in memory. */
#include "sim/sim_http.h"

#include "base/limits.h"

#include <unistd.h>

struct request {
    struct http_request pub; /* first: the handler's view */
    struct sim_http *http;
    struct sim_exchange *exchange; /* NULL once the client has gone */
    struct http_param *headers;
    size_t header_count;
    int holders;
    bool answered;
    bool unsent; /* the client had gone before the answer */
    const struct http_source *source;
    const struct http_source *ended; /* the stream is over, but its source does not know yet */
    struct request *next_over;       /* answered in this turn */
    bool waits;                      /* the server has not seen it yet */
    bool left;                       /* nor that the client has closed the connection */
    struct request *next_unseen;
};

struct sim_http {
    const struct env *env;
    http_handler *handler;
    void *ctx;
    struct sim_exchange *exchanges;
    struct request *over;
    struct request *unseen, **last_unseen; /* what happened to these while the server was paused */
    bool paused;
    size_t open;
};

static struct request *request_of(const struct http_request *req)
{
    return (struct request *)(uintptr_t)req;
}

struct sim_http *sim_http_new(const struct env *env, http_handler *handler, void *ctx)
{
    struct sim_http *http = calloc(1, sizeof(*http));
    assert(http != NULL);
    *http = (struct sim_http){.env = env, .handler = handler, .ctx = ctx};
    http->last_unseen = &http->unseen;
    return http;
}

void sim_http_free(struct sim_http *http)
{
    if (http == NULL)
        return;
    sim_http_turn(http);
    assert(http->open == 0);
    while (http->exchanges != NULL) { /* answered; their clients still look at them */
        struct sim_exchange *x = http->exchanges;
        http->exchanges = x->next;
        x->http = NULL;
        x->prev = x->next = NULL;
        x->cut |= !x->answered || (x->streams && !x->ended);
    }
    free(http);
}

size_t sim_http_open_count(const struct sim_http *http)
{
    return http->open;
}

static void tell_disconnected(struct request *r);
static void stream_over(struct request *r);

/* --- the request --- */

struct str http_header_named(const struct http_request *req, struct str name, size_t *ret_count)
{
    const struct request *r = request_of(req);
    struct str first = STR_NONE;
    size_t count = 0;
    for (size_t i = 0; i < r->header_count; i++) {
        if (!str_eq_nocase(r->headers[i].name, name))
            continue;
        if (count++ == 0)
            first = r->headers[i].value;
    }
    if (ret_count != NULL)
        *ret_count = count;
    return first;
}

bool http_header_next(const struct http_request *req, size_t *at, struct http_param *ret)
{
    const struct request *r = request_of(req);
    if (*at >= r->header_count)
        return false;
    *ret = r->headers[(*at)++];
    return true;
}

struct str http_header_list(struct http_request *req, const char *name)
{
    const struct request *r = request_of(req);
    struct buf joined;
    buf_init(&joined, HTTP_HEAD_MAX);
    for (size_t i = 0; i < r->header_count; i++) {
        if (!str_eq_nocase(r->headers[i].name, str_of(name)))
            continue;
        if (joined.len > 0)
            buf_put_char(&joined, ',');
        buf_put(&joined, r->headers[i].value);
    }
    return joined.len > 0 ? arena_take(&req->arena, &joined) : STR_NONE;
}

void http_request_hold(struct http_request *req)
{
    request_of(req)->holders++;
}

void http_request_drop(struct http_request *req)
{
    struct request *r = request_of(req);
    assert(r->holders > 0);
    if (--r->holders > 0)
        return;
    if (r->pub.cleanup != NULL)
        r->pub.cleanup(r->pub.user);
    arena_release(&r->pub.arena);
    free(r);
}

/* The connection's own hold ends at the end of the turn: the handler may still use the request. */
static void is_over(struct request *r)
{
    r->next_over = r->http->over;
    r->http->over = r;
    r->http->open--;
}

static void see(struct request *r)
{
    if (r->waits) {
        r->waits = false;
        r->http->handler(r->http->ctx, &r->pub);
    }
    if (r->left && !r->answered)
        tell_disconnected(r);
    else if (r->left && r->source != NULL)
        stream_over(r);
    r->left = false;
}

static void see_all(struct sim_http *http)
{
    struct request *r;
    while ((r = http->unseen) != NULL) {
        http->unseen = r->next_unseen;
        if (http->unseen == NULL)
            http->last_unseen = &http->unseen;
        see(r);
        http_request_drop(&r->pub);
    }
}

void sim_http_turn(struct sim_http *http)
{
    assert(!http->paused);
    see_all(http);
    while (http->over != NULL) {
        struct request *r = http->over;
        http->over = r->next_over;
        if (r->exchange != NULL)
            r->exchange->request = NULL;
        if (r->ended != NULL)
            r->ended->gone(r->pub.user);
        if (r->unsent && r->pub.unsent != NULL)
            r->pub.unsent(r->pub.user);
        http_request_drop(&r->pub);
    }
}

/* --- the answer --- */

bool http_count_for(struct http_request *req, struct str tenant)
{
    (void)req;
    (void)tenant;
    return true; /* connections are not bounded here */
}

bool http_is_answered(const struct http_request *req)
{
    return request_of(req)->answered;
}

bool http_is_connected(const struct http_request *req)
{
    const struct request *r = request_of(req);
    return r->exchange != NULL && !r->exchange->cut;
}

static void keep_headers(struct sim_exchange *x, const struct http_reply *reply)
{
    for (size_t i = 0; i < reply->header_count; i++) {
        assert(x->header_count < SIM_HEADERS_MAX);
        (void)snprintf(x->headers[x->header_count].name, sizeof(x->headers[0].name), "%s",
                       reply->headers[i].name);
        (void)snprintf(x->headers[x->header_count].value, sizeof(x->headers[0].value), "%.*s",
                       STR_ARG(reply->headers[i].value));
        x->header_count++;
    }
}

static void keep_body(struct sim_exchange *x, const struct http_reply *reply)
{
    char block[4096];
    ssize_t got;
    buf_put(&x->body, reply->body);
    while (reply->file_fd > 0 && (got = read(reply->file_fd, block, sizeof(block))) > 0)
        buf_put(&x->body, (struct str){block, (size_t)got});
}

static void answer(struct request *r, const struct http_reply *reply)
{
    assert(!r->answered);
    r->answered = true;
    struct sim_exchange *x = r->exchange;
    if (x != NULL && !x->cut) {
        x->answered = true;
        x->status = reply->status;
        (void)snprintf(x->content_type, sizeof(x->content_type), "%.*s",
                       STR_ARG(reply->content_type));
        keep_headers(x, reply);
        keep_body(x, reply);
    } else {
        r->unsent = true;
    }
    if (reply->file_fd > 0)
        close(reply->file_fd);
}

void http_send(struct http_request *req, const struct http_reply *reply)
{
    struct request *r = request_of(req);
    answer(r, reply);
    is_over(r);
}

void http_hang_up(struct http_request *req)
{
    struct request *r = request_of(req);
    assert(!r->answered);
    r->answered = true;
    if (r->exchange != NULL)
        r->exchange->cut = true;
    is_over(r);
}

const char *sim_http_answer_header(const struct sim_exchange *x, const char *name)
{
    for (size_t i = 0; i < x->header_count; i++) {
        if (strcasecmp(x->headers[i].name, name) == 0)
            return x->headers[i].value;
    }
    return NULL;
}

/* --- streams --- */

/* The source learns it at the end of the turn: a real server never calls it back from
 * http_stream_wake(). */
static void stream_over(struct request *r)
{
    r->ended = r->source;
    r->source = NULL;
    is_over(r);
}

/* Clients take answers at once: only a stream may be under way. */
void http_cut(struct http_request *req)
{
    struct request *r = request_of(req);
    assert(r->answered);
    if (r->source == NULL)
        return;
    if (r->exchange != NULL)
        r->exchange->cut = true;
    stream_over(r);
}

static void pump(struct request *r)
{
    struct str piece;
    enum http_piece got;
    while ((got = r->source->next(r->pub.user, &piece)) == HTTP_PIECE)
        buf_put(&r->exchange->body, piece);
    if (got == HTTP_LATER)
        return;
    r->exchange->ended = got == HTTP_END;
    r->exchange->cut = got == HTTP_BROKEN;
    stream_over(r);
}

void http_send_stream(struct http_request *req, const struct http_reply *reply,
                      const struct http_source *source)
{
    struct request *r = request_of(req);
    answer(r, reply);
    r->source = source;
    if (r->unsent) {
        stream_over(r);
        return;
    }
    r->exchange->streams = true;
    http_stream_wake(req);
}

void http_stream_wake(struct http_request *req)
{
    struct request *r = request_of(req);
    if (r->source != NULL && r->exchange != NULL && !r->exchange->slow)
        pump(r);
}

void sim_http_read(struct sim_exchange *x)
{
    if (x->request != NULL && x->request->source != NULL && !x->request->http->paused)
        pump(x->request);
}

/* --- the client --- */

static void set_trace(struct request *r)
{
    static const char HEX[] = "0123456789abcdef";
    unsigned char random[16];
    env_random(r->http->env, random, sizeof(random));
    for (size_t i = 0; i < sizeof(random); i++) {
        r->pub.trace_id[2 * i] = HEX[random[i] >> 4];
        r->pub.trace_id[2 * i + 1] = HEX[random[i] & 15];
    }
}

static void take_headers(struct request *r, const struct sim_request *from)
{
    r->headers = arena_alloc(&r->pub.arena, (from->header_count + 1) * sizeof(*r->headers));
    assert(r->headers != NULL);
    for (size_t i = 0; i < from->header_count; i++) {
        r->headers[i].name = arena_str(&r->pub.arena, str_of(from->headers[i].name));
        r->headers[i].value = arena_str(&r->pub.arena, str_of(from->headers[i].value));
    }
    r->header_count = from->header_count;
}

static struct request *new_request(struct sim_http *http, const struct sim_request *from)
{
    struct request *r = calloc(1, sizeof(*r));
    assert(r != NULL);
    arena_init(&r->pub.arena, HTTP_REQUEST_ARENA_MAX);
    r->http = http;
    r->holders = 1;
    struct str target = arena_str(&r->pub.arena, str_of(from->target));
    (void)str_cut(target, '?', &r->pub.path, &r->pub.query);
    r->pub.method = arena_str(&r->pub.arena, str_of(from->method));
    r->pub.body = from->body.len > 0 ? arena_str(&r->pub.arena, from->body) : STR("");
    r->pub.peer = arena_str(&r->pub.arena, str_of(from->peer != NULL ? from->peer : "10.0.0.1"));
    r->pub.begun_ns = env_mono_ns(http->env);
    take_headers(r, from);
    set_trace(r);
    return r;
}

/* The server finds it in its next turn; once. */
static void put_unseen(struct request *r)
{
    struct sim_http *http = r->http;
    for (const struct request *at = http->unseen; at != NULL; at = at->next_unseen) {
        if (at == r)
            return;
    }
    r->next_unseen = NULL;
    *http->last_unseen = r;
    http->last_unseen = &r->next_unseen;
    http_request_hold(&r->pub);
}

struct sim_exchange *sim_http_send(struct sim_http *http, const struct sim_request *request)
{
    struct sim_exchange *x = calloc(1, sizeof(*x));
    assert(x != NULL);
    buf_init(&x->body, SIZE_MAX);
    x->http = http;
    x->request = new_request(http, request);
    x->request->exchange = x;
    x->next = http->exchanges;
    if (x->next != NULL)
        x->next->prev = x;
    http->exchanges = x;
    http->open++;
    if (http->paused) {
        x->request->waits = true;
        put_unseen(x->request);
    } else {
        http->handler(http->ctx, &x->request->pub);
    }
    return x;
}

/* The handler still has to answer. */
static void tell_disconnected(struct request *r)
{
    void (*disconnected)(void *) = r->pub.disconnected;
    r->pub.disconnected = NULL;
    if (disconnected != NULL)
        disconnected(r->pub.user);
}

/* The server notices that the client is gone. */
static void disconnect(struct sim_exchange *x)
{
    struct request *r = x->request;
    x->cut = true;
    if (r != NULL && r->http->paused) {
        r->left = true;
        put_unseen(r);
        return;
    }
    if (r != NULL && !r->answered)
        tell_disconnected(r);
    else if (r != NULL && r->source != NULL)
        stream_over(r);
}

void sim_http_cut_all(struct sim_http *http)
{
    for (struct sim_exchange *x = http->exchanges; x != NULL; x = x->next) {
        if (!x->answered || x->streams)
            disconnect(x);
    }
}

void sim_http_abandon(struct sim_http *http)
{
    while (http->exchanges != NULL) {
        struct sim_exchange *x = http->exchanges;
        http->exchanges = x->next;
        if (x->request != NULL)
            x->request->exchange = NULL;
        x->cut |= !x->answered || (x->streams && !x->ended);
        x->request = NULL;
        x->http = NULL;
        x->prev = x->next = NULL;
    }
}

void sim_http_pause(struct sim_http *http, bool pause)
{
    http->paused = pause;
}

void sim_http_cut_slow(struct sim_http *http)
{
    for (struct sim_exchange *x = http->exchanges; x != NULL; x = x->next) {
        if (x->slow && x->streams)
            disconnect(x);
    }
}

static void unlink_exchange(struct sim_exchange *x)
{
    if (x->http == NULL)
        return;
    *(x->prev != NULL ? &x->prev->next : &x->http->exchanges) = x->next;
    if (x->next != NULL)
        x->next->prev = x->prev;
}

void sim_http_close(struct sim_exchange *x)
{
    if (!x->answered || x->streams)
        disconnect(x);
    if (x->request != NULL)
        x->request->exchange = NULL;
    unlink_exchange(x);
    buf_release(&x->body);
    free(x);
}
