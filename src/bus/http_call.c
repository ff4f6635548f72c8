/* One outgoing HTTP call as data. */
#include "bus/http_call.h"

#include "base/limits.h"

#include <stdarg.h>

static const struct {
    const char *code;
    bool again;
} ENDS[] = {
#define X(symbol, code, again) {code, again},
    CALL_ENDS(X)
#undef X
};

static_assert(ARRAY_LEN(ENDS) == CALL_END_COUNT, "one row per end");

const char *call_end_code(enum call_end end)
{
    assert(end < CALL_END_COUNT);
    return ENDS[end].code;
}

bool call_end_retryable(enum call_end end)
{
    assert(end < CALL_END_COUNT);
    return ENDS[end].again;
}

/* --- making one --- */

static bool keep_headers(struct arena *arena, struct http_call_request *r)
{
    struct http_call_header *kept =
        arena_alloc(arena, MAX(r->header_count, (size_t)1) * sizeof(*kept));
    if (kept == NULL)
        return false;
    for (size_t i = 0; i < r->header_count; i++) {
        kept[i] = r->headers[i];
        if (!arena_keep(arena, &kept[i].name) || !arena_keep(arena, &kept[i].value))
            return false;
    }
    r->headers = kept;
    return true;
}

struct http_call *http_call_new(const struct http_call_request *request)
{
    assert(request->method.ptr != NULL && request->url.ptr != NULL && request->timeout_ms > 0);
    struct http_call *call = calloc(1, sizeof(*call));
    if (call == NULL)
        return NULL;
    call->request = *request;
    call->end = CALL_ABORTED;
    buf_init(&call->head, CALL_HEAD_MAX);
    buf_init(&call->body, CALL_RESPONSE_MAX);
    arena_init(&call->arena, JSON_WRITTEN_MAX);
    struct http_call_request *r = &call->request;
    if (!arena_keep(&call->arena, &r->method) || !arena_keep(&call->arena, &r->url) ||
        !arena_keep(&call->arena, &r->body) || !keep_headers(&call->arena, r)) {
        http_call_free(call);
        return NULL;
    }
    return call;
}

void http_call_free(struct http_call *call)
{
    if (call == NULL)
        return;
    buf_release(&call->head);
    buf_release(&call->body);
    arena_release(&call->arena);
    free(call);
}

/* --- the result --- */

void http_call_end(struct http_call *call, enum call_end end, const char *fmt, ...)
{
    assert(end < CALL_END_COUNT);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(call->detail, sizeof(call->detail), fmt, args);
    va_end(args);
    str_repair_utf8(call->detail, strlen(call->detail));
    call->end = end;
}

bool http_call_next_header(const struct http_call *call, size_t *at, struct http_call_header *ret)
{
    while (*at < call->head.len) {
        struct str rest = {call->head.ptr + *at, call->head.len - *at};
        struct str line;
        struct str ignored;
        (void)str_cut(rest, '\n', &line, &ignored);
        *at += line.len + 1;
        if (str_cut(line, ':', &ret->name, &ret->value)) {
            ret->value = str_trim(ret->value);
            return true;
        }
    }
    return false;
}

struct str http_call_header(const struct http_call *call, struct str name)
{
    struct http_call_header header;
    size_t at = 0;
    while (http_call_next_header(call, &at, &header)) {
        if (str_eq_nocase(header.name, name))
            return header.value;
    }
    return STR_NONE;
}
