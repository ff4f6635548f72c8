/* A request: its headers and who holds it. */
#include "http/mhd/internal.h"

static enum MHD_Result take_header(void *ctx, enum MHD_ValueKind kind, const char *key,
                                   size_t key_size, const char *value, size_t value_size)
{
    (void)kind;
    struct request *r = ctx;
    struct str text = {value != NULL ? value : "", value != NULL ? value_size : 0};
    r->headers[r->header_count++] = (struct http_param){{key, key_size}, text};
    return MHD_YES;
}

bool request_read_headers(struct request *r)
{
    int count = MHD_get_connection_values_n(r->connection, MHD_HEADER_KIND, NULL, NULL);
    r->headers = arena_alloc(&r->pub.arena, MAX((size_t)count, (size_t)1) * sizeof(*r->headers));
    if (r->headers == NULL)
        return false;
    (void)MHD_get_connection_values_n(r->connection, MHD_HEADER_KIND, take_header, r);
    assert(r->header_count == (size_t)count);
    return true;
}

struct str http_header(const struct http_request *req, const char *name, size_t *ret_count)
{
    const struct request *r = request_of(req);
    struct str wanted = str_of(name);
    struct str first = STR_NONE;
    size_t count = 0;
    assert(r->connection != NULL);
    for (size_t i = 0; i < r->header_count; i++) {
        if (!str_eq_nocase(r->headers[i].name, wanted))
            continue;
        if (count++ == 0)
            first = r->headers[i].value;
    }
    if (ret_count != NULL)
        *ret_count = count;
    return first;
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
    buf_release(&r->body);
    arena_release(&r->pub.arena);
    free(r);
}
