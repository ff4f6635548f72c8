/* Spans of requests. */
#include "api/tracing.h"

#include "api/api.h"
#include "base/log.h"

/* The trace's id is text already. When the request began tells it from others of the trace. */
struct trace_span request_span(const struct http_request *req)
{
    struct uuid trace = trace_id_of(req->trace_id);
    return trace_span_below(req->traceparent, trace, trace_span_id(trace, req->begun_ns));
}

static struct str cut(struct str text)
{
    return (struct str){text.ptr, MIN(text.len, (size_t)SPAN_TEXT_MAX)};
}

/* "GET /api/v1/runs/{run_id}": few names, since the variable parts are not in the route. */
static struct str name_of(const struct http_request *req, struct str route, struct buf *out)
{
    buf_put(out, req->method);
    if (route.ptr != NULL) {
        buf_put_char(out, ' ');
        buf_put(out, route);
    }
    return buf_str(out);
}

static void log_request(const struct env *env, const struct http_request *req, int status)
{
    LOG(LOG_INFO, "request", LOG_S("method", req->method), LOG_S("path", cut(req->path)),
        LOG_N("status", status), LOG_N("ms", (env_mono_ns(env) - req->begun_ns) / 1000000));
}

static void export_request(struct api *api, const struct http_request *req, int status,
                           struct str route)
{
    struct span span = {.kind = SPAN_SERVER};
    span.place = request_span(req);
    if ((span.place.flags & TRACE_SAMPLED) == 0)
        return;
    const struct env *env = api->config.env;
    struct buf name;
    buf_init(&name, SPAN_TEXT_MAX);
    span.name = name_of(req, route, &name);
    span.ended_ns = env->now_us(env->ctx) * 1000;
    span.begun_ns = span.ended_ns - (env_mono_ns(env) - req->begun_ns);
    span.failed = status >= 500;
    span_add_text(&span, "http.request.method", req->method);
    span_add_text(&span, "http.route", route);
    span_add_text(&span, "url.path", cut(req->path));
    span_add_text(&span, "client.address", req->peer);
    span_add_number(&span, "http.response.status_code", status);
    if (buf_ok(&name))
        engine_export_span(api->config.engine, &span);
    buf_release(&name);
}

void api_request_over(void *ctx, const struct http_request *req, int status, struct str route)
{
    struct api *api = ctx;
    if (req->method.len == 0) /* what was malformed has no method and no path */
        return;
    if (api->config.log_requests)
        log_request(api->config.env, req, status);
    if (api->config.export_spans && api->config.engine != NULL && !req->of_node)
        export_request(api, req, status, route);
}
