/* Replies as values, and problems as problem+json. */
#include "http/problem_reply.h"

#include "base/json.h"
#include "base/limits.h"

#include <stdarg.h>

void http_reply_init(struct http_reply *reply, int status, struct str content_type, struct str body)
{
    *reply = (struct http_reply){.status = status, .content_type = content_type, .body = body};
}

void http_reply_add(struct http_reply *reply, const char *name, struct str value)
{
    static_assert(ARRAY_LEN(((struct http_reply *)0)->headers) == HTTP_REPLY_HEADERS_MAX,
                  "as many as the limit says");
    assert(reply->header_count < HTTP_REPLY_HEADERS_MAX);
    reply->headers[reply->header_count].name = name;
    reply->headers[reply->header_count].value = value;
    reply->header_count++;
}

void problem_put_json(struct buf *out, const struct problem *p, struct str trace_id)
{
    struct json_out o = json_out_to(out);
    json_open(&o, NULL, '{');
    json_add_name(&o, "type");
    buf_printf(out, "\"urn:pawl:problem:%s\"", err_code(p->err));
    json_add_text(&o, "title", str_of(err_title(p->err)));
    json_add_int(&o, "status", err_http_status(p->err));
    json_add_text(&o, "detail", str_of(p->detail));
    json_add_text(&o, "code", str_of(err_code(p->err)));
    json_add_bool(&o, "retryable", err_retryable(p->err));
    json_add_text(&o, "trace_id", trace_id);
    for (size_t i = 0; i < p->number_count; i++)
        json_add_int(&o, p->numbers[i].name, p->numbers[i].value);
    if (p->texts.len > 0 && buf_ok(&p->texts)) {
        buf_put_char(out, ',');
        buf_put(out, buf_str(&p->texts));
    }
    if (p->limited_by != NULL)
        json_add_text(&o, "limited_by", str_of(p->limited_by));
    if (p->faults.len > 0)
        json_add_raw(&o, "errors", buf_str(&p->faults));
    json_close(&o, '}');
}

static int64_t number_of(const struct problem *p, const char *name)
{
    for (size_t i = 0; i < p->number_count; i++) {
        if (strcmp(p->numbers[i].name, name) == 0)
            return p->numbers[i].value;
    }
    return -1;
}

/* A short header value in the request's arena; empty when memory ran out, which leaves the header
 * out. */
static struct str value_text(struct http_request *req, const char *fmt, ...) PRINTF_LIKE(2, 3);

static struct str value_text(struct http_request *req, const char *fmt, ...)
{
    char text[64];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return arena_str(&req->arena, str_of(text));
}

static void add_limit_headers(struct http_request *req, const struct problem *p,
                              struct http_reply *reply)
{
    int status = err_http_status(p->err);
    if (status != 429 && status != 503)
        return;
    int64_t after = MAX(p->retry_after_s, 1);
    http_reply_add(reply, "Retry-After", value_text(req, "%lld", (long long)after));
    int64_t limit = number_of(p, "limit");
    if (status != 429 || limit < 0 || p->limit_policy == NULL)
        return;
    /* Limits of runs have no window; the rate of starts is per second. */
    int64_t per_second = number_of(p, "per_second");
    if (per_second > 0)
        http_reply_add(
            reply, "RateLimit-Policy",
            value_text(req, "\"%s\";q=%lld;w=1", p->limit_policy, (long long)per_second));
    else
        http_reply_add(reply, "RateLimit-Policy",
                       value_text(req, "\"%s\";q=%lld", p->limit_policy, (long long)limit));
    http_reply_add(reply, "RateLimit",
                   value_text(req, "\"%s\";r=%lld;t=%lld", p->limit_policy,
                              (long long)MAX(limit - number_of(p, "current"), (int64_t)0),
                              (long long)after));
}

void http_problem_reply(struct http_request *req, const struct problem *p, struct http_reply *ret)
{
    static const char LAST_RESORT[] =
        "{\"type\":\"urn:pawl:problem:OUT_OF_MEMORY\",\"title\":\"The server is out of memory\","
        "\"status\":503,\"detail\":\"\",\"code\":\"OUT_OF_MEMORY\",\"retryable\":true,"
        "\"trace_id\":\"\"}";
    struct buf text;
    buf_init(&text, PROBLEM_FAULTS_MAX + PROBLEM_TEXTS_MAX + 4 * KIB);
    problem_put_json(&text, p, str_of(req->trace_id));
    struct str body = arena_take(&req->arena, &text);
    int status = body.ptr != NULL ? err_http_status(p->err) : 503;
    http_reply_init(ret, status, STR("application/problem+json"),
                    body.ptr != NULL ? body : str_of(LAST_RESORT));
    add_limit_headers(req, p, ret);
    if (p->err == ERR_UNAUTHENTICATED)
        http_reply_add(ret, "WWW-Authenticate", STR("Bearer realm=\"pawl\""));
}

void http_send_problem(struct http_request *req, const struct problem *p, struct str route,
                       const char *allow)
{
    struct http_reply reply;
    http_problem_reply(req, p, &reply);
    reply.route = route;
    if (allow != NULL)
        http_reply_add(&reply, "Allow", str_of(allow));
    http_send(req, &reply);
}
