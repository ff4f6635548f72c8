#include "memory_http.h"

#include "base/limits.h"
#include "base/trace/trace.h"

#include <unistd.h>

static struct memory_request *request_of(const struct http_request *req)
{
    return (struct memory_request *)(uintptr_t)req;
}

/* --- the client's side --- */

static void set_trace(struct memory_request *r, const struct env *env)
{
    size_t count;
    struct str given = http_header(&r->pub, "traceparent", &count);
    if (count == 1 && traceparent_ok(given)) {
        r->pub.traceparent = (struct str){given.ptr, TRACEPARENT_LEN};
        memcpy(r->pub.trace_id, given.ptr + TRACE_ID_AT, TRACE_ID_LEN);
        return;
    }
    env_random(env, r->pub.trace_id, TRACE_ID_LEN);
    for (size_t i = 0; i < TRACE_ID_LEN; i++)
        r->pub.trace_id[i] = "0123456789abcdef"[r->pub.trace_id[i] & 15];
}

struct memory_request *memory_request_new(const struct env *env, struct str method,
                                          struct str target, struct str body,
                                          const struct http_param *headers, size_t header_count)
{
    struct memory_request *r = calloc(1, sizeof(*r));
    assert(r != NULL);
    r->holders = 1;
    arena_init(&r->pub.arena, HTTP_REQUEST_ARENA_MAX + HTTP_BODY_MAX);
    struct arena *arena = &r->pub.arena;
    r->pub.begun_ns = env_mono_ns(env);
    (void)str_cut(arena_str(arena, target), '?', &r->pub.path, &r->pub.query);
    r->pub.method = arena_str(arena, method);
    r->pub.peer = STR("192.0.2.1");
    r->pub.body = body.len > 0 ? arena_str(arena, body) : STR("");
    r->headers = arena_alloc(arena, (header_count + 1) * sizeof(*headers));
    assert(r->headers != NULL);
    for (size_t i = 0; i < header_count; i++)
        r->headers[i] = (struct http_param){arena_str(arena, headers[i].name),
                                            arena_str(arena, headers[i].value)};
    r->header_count = header_count;
    set_trace(r, env);
    return r;
}

void memory_request_over(struct memory_request *r)
{
    const struct http_source *source = r->source;
    r->is_over = true;
    r->source = NULL;
    if (r->reply.file_fd > 0)
        close(r->reply.file_fd);
    if (source != NULL)
        source->gone(r->pub.user);
    http_request_drop(&r->pub);
}

/* --- the handler's side --- */

struct str http_header_named(const struct http_request *req, struct str name, size_t *ret_count)
{
    const struct memory_request *r = request_of(req);
    struct str first = STR_NONE;
    size_t count = 0;
    for (size_t i = 0; i < r->header_count; i++) {
        if (str_eq_nocase(r->headers[i].name, name) && count++ == 0)
            first = r->headers[i].value;
    }
    if (ret_count != NULL)
        *ret_count = count;
    return first;
}

struct str http_header_list(struct http_request *req, const char *name)
{
    const struct memory_request *r = request_of(req);
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
    struct memory_request *r = request_of(req);
    assert(r->holders > 0);
    if (--r->holders > 0)
        return;
    if (r->pub.cleanup != NULL)
        r->pub.cleanup(r->pub.user);
    arena_release(&r->pub.arena);
    free(r);
}

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
    return !request_of(req)->is_over;
}

void http_send(struct http_request *req, const struct http_reply *reply)
{
    struct memory_request *r = request_of(req);
    assert(!r->answered);
    r->answered = true;
    r->reply = *reply;
}

void http_hang_up(struct http_request *req)
{
    struct memory_request *r = request_of(req);
    assert(!r->answered);
    r->answered = r->hung_up = true;
}

void http_cut(struct http_request *req)
{
    request_of(req)->hung_up = true;
}

void http_send_stream(struct http_request *req, const struct http_reply *reply,
                      const struct http_source *source)
{
    request_of(req)->source = source;
    http_send(req, reply);
}

/* A stream is read when its client asks. */
void http_stream_wake(struct http_request *req)
{
    (void)req;
}
