/* Any bytes as the path and the query of any route: an answer or a refusal, and nothing changes. A
 * route that changes something gets a body that is not JSON, so it is refused in any case. */
#include "server/begin.h"

#include "server/route_request.h"

/* A request line has neither spaces nor control characters. */
static void put_raw(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] > ' ')
            buf_put_char(out, text.ptr[i]);
    }
}

/* The pattern with texts of the input in its places, or plain good values. */
static void put_target(struct buf *out, const struct route *route, struct taker *t)
{
    struct route_request plain;
    route_request_plain(&plain, route, take_byte(t));
    if (take_one_in(t, 2)) {
        buf_put(out, plain.request.target);
    } else {
        for (const char *at = route->pattern; *at != '\0'; at++) {
            if (*at == '{')
                put_raw(out, take_text(t, 255));
            else if (*at != '}')
                buf_put_char(out, *at);
        }
    }
    route_request_release(&plain);
    if (t->left > 0) {
        buf_put_char(out, '?');
        put_raw(out, (struct str){(const char *)t->at, t->left});
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_for_all_inputs();
    struct taker t = {data, size};
    const struct route *route = route_at(take_byte(&t));
    struct buf target;
    buf_init(&target, HTTP_HEAD_MAX);
    put_target(&target, route, &t);
    bool writes = strcmp(route->method, "GET") != 0;
    bool whole_file = (route->flags & ROUTE_FILE) != 0; /* a copy of the store takes long */
    if (!whole_file) {
        struct fuzz_request r = fuzz_request(route->method, buf_str(&target),
                                             writes ? STR("x") : STR_NONE, STR("acme"));
        struct fuzz_answer a = fuzz_ask(&r);
        assert(!writes || a.status >= 400);
        json_decref(a.json);
    }
    buf_release(&target);
    return 0;
}
