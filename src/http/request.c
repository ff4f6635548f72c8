/* A request: who holds it, and its headers. */
#include "http/internal.h"

struct request *request_new(struct conn *c)
{
    struct request *r = malloc(sizeof(*r));
    if (r == NULL)
        return NULL;
    memset(r, 0, offsetof(struct request, head));
    head_begin(&r->head);
    r->server = c->server;
    r->conn = c;
    r->holders = 1;
    r->file_fd = -1;
    arena_init(&r->pub.arena, HTTP_REQUEST_ARENA_MAX);
    r->pub.begun_ns = env_mono_ns(c->server->config.env);
    return r;
}

bool request_reserve(struct request *r, size_t cap)
{
    if (cap <= r->in_cap)
        return true;
    char *in = realloc(r->in, cap);
    if (in == NULL)
        return false;
    r->in = in;
    r->in_cap = cap;
    return true;
}

static void observe(const struct request *r)
{
    struct http_server *s = r->server;
    if (r->status != 0 && s->config.observer != NULL)
        s->config.observer(s->config.handler_ctx, &r->pub, r->status, r->route);
    if (s->durations == NULL || r->status == 0)
        return;
    char status[] = {(char)('0' + r->status / 100), (char)('0' + r->status / 10 % 10),
                     (char)('0' + r->status % 10), '\0'};
    double seconds = (double)(env_mono_ns(s->config.env) - r->pub.begun_ns) / 1e9;
    struct str route = r->route.ptr != NULL ? r->route : STR("none");
    metric_observe(s->durations, route, str_of(status), seconds);
}

void request_over(struct request *r)
{
    const struct http_source *source = r->source;
    r->conn = NULL;
    r->source = NULL;
    if (r->answered && !r->is_sent && r->pub.unsent != NULL)
        r->pub.unsent(r->pub.user);
    observe(r);
    if (source != NULL)
        source->gone(r->pub.user);
    http_request_drop(&r->pub);
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
    assert(r->ahead == NULL && r->file_fd < 0);
    arena_release(&r->pub.arena);
    free(r->gathered);
    free(r->in);
    free(r);
}

struct str http_header_named(const struct http_request *req, struct str name, size_t *ret_count)
{
    const struct request *r = request_of(req);
    const struct head *h = &r->head;
    struct str first = STR_NONE;
    size_t count = 0;
    for (size_t i = 0; i < h->field_count; i++) {
        if (h->fields[i].name.len != name.len ||
            !str_eq_nocase(slice_str(r->in, h->fields[i].name), name))
            continue;
        if (count++ == 0)
            first = slice_str(r->in, h->fields[i].value);
    }
    if (count > 0 && h->absolute && str_eq_nocase(name, STR("Host")))
        first = slice_str(r->in, h->host);
    if (ret_count != NULL)
        *ret_count = count;
    return first;
}

struct str http_header_list(struct http_request *req, const char *name)
{
    size_t count;
    struct str first = http_header(req, name, &count);
    if (count <= 1)
        return first;
    const struct request *r = request_of(req);
    struct buf joined;
    buf_init(&joined, HTTP_HEAD_MAX);
    for (size_t i = 0; i < r->head.field_count; i++) {
        if (!str_eq_nocase(slice_str(r->in, r->head.fields[i].name), str_of(name)))
            continue;
        if (joined.len > 0)
            buf_put_char(&joined, ',');
        buf_put(&joined, slice_str(r->in, r->head.fields[i].value));
    }
    return arena_take(&req->arena, &joined);
}

bool http_header_next(const struct http_request *req, size_t *at, struct http_param *ret)
{
    const struct request *r = request_of(req);
    if (*at >= r->head.field_count)
        return false;
    const struct parse_field *field = &r->head.fields[(*at)++];
    *ret = (struct http_param){slice_str(r->in, field->name), slice_str(r->in, field->value)};
    return true;
}

bool http_is_connected(const struct http_request *req)
{
    const struct request *r = request_of(req);
    return r->conn != NULL && !r->conn->half_closed && !io_is_half_closed(r->conn);
}

bool http_is_answered(const struct http_request *req)
{
    return request_of(req)->answered;
}
