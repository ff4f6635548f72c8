/* Receivers by path. */
#include "sim/receiver.h"

#include <strings.h>

static const struct {
    const char *prefix;
    int64_t (*receive)(struct place *p, struct http_call *call);
} PATHS[] = {
#define X(prefix, function) {prefix, function},
    SIM_PATHS(X)
#undef X
};

/* After the host. */
static struct str path_of(struct str url)
{
    size_t at = 0;
    for (int slashes = 0; at < url.len; at++) {
        if (url.ptr[at] == '/' && ++slashes == 3)
            break;
    }
    return (struct str){url.ptr + at, url.len - at};
}

int64_t receiver_receive(void *ctx, struct http_call *call)
{
    struct str path = path_of(call->request.url);
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        size_t len = strlen(PATHS[i].prefix);
        if (path.len >= len && memcmp(path.ptr, PATHS[i].prefix, len) == 0)
            return PATHS[i].receive(ctx, call);
    }
    http_call_end(call, CALL_CONNECT_FAILED, "nobody is there");
    return 1;
}

struct str received_header(const struct http_call *call, const char *name)
{
    for (size_t i = 0; i < call->request.header_count; i++) {
        const struct http_call_header *h = &call->request.headers[i];
        if (h->name.len == strlen(name) && strncasecmp(h->name.ptr, name, h->name.len) == 0)
            return h->value;
    }
    return (struct str){0};
}

void receiver_answer(struct http_call *call, int status, const char *json)
{
    call->status = status;
    buf_put(&call->head, STR("content-type: application/json\n"));
    buf_put(&call->body, str_of(json));
    http_call_end(call, CALL_ANSWERED, "%s", "");
}
