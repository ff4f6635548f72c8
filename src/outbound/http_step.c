/* The call of an http step. */
#include "outbound/http_step.h"

#include "base/json.h"
#include "base/limits.h"
#include "domain/call_verdict.h"

enum { HEADERS_MAX = 100 }; /* in a request or an output; nobody needs more */

/* application/json, text/json, application/problem+json …, with or without parameters. */
static bool is_json_type(struct str content_type)
{
    struct str type;
    struct str parameters;
    (void)str_cut(content_type, ';', &type, &parameters);
    type = str_trim(type);
    struct str suffix = STR("+json");
    return str_eq_nocase(type, STR("application/json")) || str_eq_nocase(type, STR("text/json")) ||
           (type.len > suffix.len &&
            str_eq_nocase((struct str){type.ptr + type.len - suffix.len, suffix.len}, suffix));
}

/* --- the request --- */

struct draft {
    const struct json *input;
    const struct call_job *job;
    struct problem *p;
    struct http_call_header headers[HEADERS_MAX];
    size_t header_count;
    struct str content_type; /* ptr NULL: not given */
    struct buf text;         /* scratch: header values that are not text, then the body */
    char job_id[UUID_TEXT_LEN + 1];
    bool has_trace; /* the step brings its own */
};

static enum err add_header(struct draft *d, struct str name, struct str value)
{
    if (d->header_count == HEADERS_MAX)
        return problem_set(d->p, ERR_FIELD_INVALID, "A request may have at most %d headers",
                           HEADERS_MAX);
    d->headers[d->header_count++] = (struct http_call_header){name, value};
    return ERR_OK;
}

/* A template that is the whole value of a header may give a number or a boolean. */
static enum err header_text(struct draft *d, const char *name, const struct json *value,
                            struct arena *arena, struct str *ret)
{
    if (json_is(value, JSON_KIND_TEXT)) {
        *ret = json_text_of(value);
        return ERR_OK;
    }
    bool is_number = json_is(value, JSON_KIND_INTEGER) || json_is(value, JSON_KIND_REAL);
    if (!is_number && !json_is_bool(value))
        return problem_set(d->p, ERR_FIELD_INVALID,
                           "The header %s must be a string, a number or a boolean", name);
    buf_clear(&d->text);
    json_write_plain(&d->text, value);
    *ret = buf_ok(&d->text) ? arena_str(arena, buf_str(&d->text)) : STR_NONE;
    return ret->ptr != NULL ? ERR_OK
                            : problem_set(d->p, ERR_NO_MEMORY, "The server is out of memory");
}

/* The key is the job's id: the same at every attempt. */
static enum err add_own_headers(struct draft *d)
{
    struct buf id;
    buf_init(&id, UUID_TEXT_LEN);
    buf_put_uuid(&id, d->job->id);
    bool ok = buf_ok(&id);
    if (ok)
        memcpy(d->job_id, id.ptr, UUID_TEXT_LEN);
    buf_release(&id);
    if (!ok)
        return problem_set(d->p, ERR_NO_MEMORY, "The server is out of memory");
    enum err e = add_header(d, STR("Idempotency-Key"), str_of(d->job_id));
    if (e != ERR_OK || d->has_trace)
        return e;
    e = add_header(d, STR("traceparent"), str_of(d->job->traceparent));
    if (e != ERR_OK || d->job->tracestate.ptr == NULL)
        return e;
    return add_header(d, STR("tracestate"), d->job->tracestate);
}

/* The server sets these itself. A step may only bring a trace if the run's starter did not. */
static bool is_own_header(const struct draft *d, struct str name)
{
    bool trace = str_eq_nocase(name, STR("traceparent")) || str_eq_nocase(name, STR("tracestate"));
    return str_eq_nocase(name, STR("idempotency-key")) || (trace && d->job->trace_is_given);
}

static enum err add_headers(struct draft *d, struct arena *arena)
{
    const struct json *headers = json_member(d->input, STR("headers"));
    if (headers != NULL && !json_is(headers, JSON_KIND_OBJECT) && !json_is(headers, JSON_KIND_NULL))
        return problem_set(d->p, ERR_FIELD_INVALID, "The headers must be an object");
    for (size_t i = 0; i < json_members(headers); i++) {
        struct str text = STR_NONE;
        struct str key = json_name_at(headers, i);
        const struct json *value = json_value_at(headers, i);
        if (json_is(value, JSON_KIND_NULL) || is_own_header(d, key)) /* null: leave it out */
            continue;
        enum err e = header_text(d, key.ptr, value, arena, &text);
        if (e != ERR_OK)
            return e;
        e = add_header(d, key, text);
        if (e != ERR_OK)
            return e;
        if (str_eq_nocase(key, STR("content-type")))
            d->content_type = text;
        d->has_trace |= str_eq_nocase(key, STR("traceparent"));
    }
    return add_own_headers(d);
}

/* A string with a content type that is not JSON is sent as it is, everything else as JSON. */
static enum err set_body(struct draft *d, struct str *ret)
{
    const struct json *body = json_member(d->input, STR("body"));
    *ret = STR_NONE;
    if (body == NULL || json_is(body, JSON_KIND_NULL))
        return ERR_OK;
    if (json_is(body, JSON_KIND_TEXT) && d->content_type.ptr != NULL &&
        !is_json_type(d->content_type)) {
        *ret = json_text_of(body);
        return ERR_OK;
    }
    buf_clear(&d->text);
    json_write_plain(&d->text, body);
    *ret = buf_str(&d->text);
    if (!buf_ok(&d->text))
        return problem_set(d->p, ERR_NO_MEMORY, "The server is out of memory");
    return d->content_type.ptr != NULL
               ? ERR_OK
               : add_header(d, STR("Content-Type"), STR("application/json"));
}

static enum err make(struct draft *d, struct arena *arena, struct http_call **ret)
{
    const struct json *method = json_member(d->input, STR("method"));
    const struct json *url = json_member(d->input, STR("url"));
    struct http_call_request request = {.timeout_ms = d->job->timeout_ms,
                                        .redirects_max = CALL_REDIRECTS_MAX};
    if (!json_is(method, JSON_KIND_TEXT) || !json_is(url, JSON_KIND_TEXT))
        return problem_set(d->p, ERR_FIELD_INVALID, "The method and the url must be strings");
    enum err e = add_headers(d, arena);
    if (e != ERR_OK)
        return e;
    e = set_body(d, &request.body);
    if (e != ERR_OK)
        return e;
    request.method = json_text_of(method);
    request.url = json_text_of(url);
    request.headers = d->headers;
    request.header_count = d->header_count;
    *ret = http_call_new(&request);
    return *ret != NULL ? ERR_OK : problem_set(d->p, ERR_NO_MEMORY, "The server is out of memory");
}

enum err http_step_shape(const struct call_job *job, struct problem *p, struct http_call **ret)
{
    struct str input = job->input;
    struct json *json = NULL;
    if (json_read_kept(input, &json) == ERR_NO_MEMORY)
        return problem_set(p, ERR_NO_MEMORY, "The server is out of memory");
    if (!json_is(json, JSON_KIND_OBJECT)) {
        json_free(json);
        return problem_set(p, ERR_FIELD_INVALID, "The job has no request");
    }
    struct draft d = {.input = json, .job = job, .p = p};
    struct arena arena;
    arena_init(&arena, CALL_HEAD_MAX);
    buf_init(&d.text, JSON_WRITTEN_MAX);
    enum err e = make(&d, &arena, ret);
    buf_release(&d.text);
    arena_release(&arena);
    json_free(json);
    return e;
}

/* --- the result --- */

/* About the connection, or a secret of the receiver. */
static bool is_left_out(struct str name)
{
    static const char *const NAMES[] = {"connection", "keep-alive",        "set-cookie",
                                        "trailer",    "transfer-encoding", "upgrade"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        if (str_eq_nocase(name, str_of(NAMES[i])))
            return true;
    }
    return false;
}

static void lower(struct buf *out, struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        buf_put_char(out, (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c));
    }
}

/* Lines with the same name make one value, joined by commas (RFC 9110). */
static void put_value(struct buf *out, const struct http_call_header *headers, size_t count,
                      size_t from)
{
    buf_clear(out);
    for (size_t i = from; i < count; i++) {
        if (!str_eq_nocase(headers[i].name, headers[from].name))
            continue;
        if (out->len > 0)
            buf_put(out, STR(", "));
        buf_put(out, headers[i].value);
    }
}

static bool is_repeated(const struct http_call_header *headers, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (str_eq_nocase(headers[i].name, headers[at].name))
            return true;
    }
    return false;
}

/* {lower-case name: value}. */
static void put_headers(struct json_out *o, const struct http_call *call)
{
    struct http_call_header headers[HEADERS_MAX];
    size_t count = 0;
    size_t at = 0;
    size_t bytes = 0;
    while (count < HEADERS_MAX && http_call_next_header(call, &at, &headers[count])) {
        bytes += headers[count].name.len + headers[count].value.len;
        if (bytes > CALL_HEADERS_KEPT_MAX)
            break;
        count += !is_left_out(headers[count].name);
    }
    struct buf name;
    struct buf value;
    buf_init(&name, CALL_HEAD_MAX);
    buf_init(&value, CALL_HEAD_MAX);
    json_open(o, "headers", '{');
    for (size_t i = 0; i < count; i++) {
        if (is_repeated(headers, i))
            continue;
        buf_clear(&name);
        lower(&name, headers[i].name);
        put_value(&value, headers, count, i);
        if (o->comma)
            buf_put_char(o->buf, ',');
        json_put_text(o->buf, buf_str(&name));
        buf_put_char(o->buf, ':');
        json_put_text(o->buf, buf_str(&value));
        o->comma = true;
    }
    json_close(o, '}');
    o->buf->failed |= name.failed || value.failed;
    buf_release(&name);
    buf_release(&value);
}

/* JSON in the store must not contain NUL. */
static bool is_text(struct str s)
{
    return str_is_utf8(s) && memchr(s.ptr, '\0', s.len) == NULL;
}

/* *ret_done is false when the body is not JSON. */
static enum err put_json_body(struct json_out *o, struct str body, bool *ret_done)
{
    struct problem p;
    problem_init(&p);
    struct json *json = NULL;
    enum err e = json_read(body, &p, &json);
    problem_release(&p);
    *ret_done = e == ERR_OK;
    if (e != ERR_OK)
        return e == ERR_NO_MEMORY ? e : ERR_OK;
    json_add_name(o, "body");
    json_write_plain(o->buf, json);
    o->comma = true;
    json_add_text(o, "body_encoding", STR("json"));
    json_free(json);
    return ERR_OK;
}

static enum err put_body(struct json_out *o, const struct http_call *call)
{
    struct str body = buf_str(&call->body);
    bool done = false;
    if (body.len == 0) {
        json_add_null(o, "body");
        return ERR_OK;
    }
    if (is_json_type(http_call_header(call, STR("content-type")))) {
        enum err e = put_json_body(o, body, &done);
        if (e != ERR_OK || done)
            return e;
    }
    if (is_text(body)) {
        json_add_text(o, "body", body);
        json_add_text(o, "body_encoding", STR("text"));
        return ERR_OK;
    }
    json_add_name(o, "body");
    buf_put_char(o->buf, '"');
    buf_put_base64(o->buf, body.ptr, body.len);
    buf_put_char(o->buf, '"');
    o->comma = true;
    json_add_text(o, "body_encoding", STR("base64"));
    return ERR_OK;
}

/* The first bytes of the response body, if they are text. */
static void put_excerpt(struct json_out *o, const struct http_call *call)
{
    char excerpt[CALL_EXCERPT_MAX];
    size_t len = MIN(call->body.len, sizeof(excerpt));
    if (len == 0 || memchr(call->body.ptr, '\0', len) != NULL)
        return;
    memcpy(excerpt, call->body.ptr, len);
    str_repair_utf8(excerpt, len);
    json_add_text(o, "body", (struct str){excerpt, len});
}

static void put_error(struct call_result *r, const char *message, const struct http_call *call)
{
    r->kind = CALL_RESULT_ERROR;
    buf_clear(&r->text);
    struct json_out o = json_out_to(&r->text);
    json_open(&o, NULL, '{');
    json_add_text(&o, "code", str_of(r->code));
    json_add_text(&o, "message", str_of(message));
    if (call != NULL) {
        json_open(&o, "details", '{');
        json_add_int(&o, "status", call->status);
        put_excerpt(&o, call);
        json_close(&o, '}');
    }
    json_close(&o, '}');
}

void http_step_refuse(struct call_result *r, enum call_end end, const char *why)
{
    (void)snprintf(r->code, sizeof(r->code), "%s", call_end_code(end));
    r->retryable = call_end_retryable(end);
    r->timed_out = end == CALL_TIMED_OUT;
    put_error(r, why, NULL);
}

static void take_output(struct call_result *r, const struct http_call *call)
{
    struct json_out o = json_out_to(&r->text);
    r->kind = CALL_RESULT_OUTPUT;
    json_open(&o, NULL, '{');
    json_add_int(&o, "status", call->status);
    put_headers(&o, call);
    enum err e = put_body(&o, call);
    json_close(&o, '}');
    if (e == ERR_OK && buf_ok(&r->text))
        return;
    /* Escapes and base64 make some bodies larger. */
    bool large = e == ERR_OK && r->text.len + call->body.len > CALL_OUTPUT_MAX / 2;
    http_step_refuse(r, large ? CALL_RESPONSE_TOO_LARGE : CALL_FAILED,
                     large ? "The response is too large as JSON" : "The server is out of memory");
}

static void take_answer(struct call_result *r, const struct http_call *call, int64_t now_ms)
{
    enum call_verdict verdict = call_verdict_of(call->status);
    if (verdict == CALL_IS_DONE) {
        take_output(r, call);
        return;
    }
    char message[64];
    (void)snprintf(message, sizeof(message), "The receiver answered %d", call->status);
    (void)snprintf(r->code, sizeof(r->code), "HTTP_%d", call->status);
    r->retryable = verdict == CALL_IS_LOST;
    if (r->retryable)
        r->retry_after_ms =
            MAX(retry_after_ms(http_call_header(call, STR("retry-after")), now_ms), (int64_t)0);
    put_error(r, message, call);
}

void http_step_take_result(struct call_result *r, const struct http_call *call, int64_t now_ms)
{
    buf_clear(&r->text);
    if (call->end == CALL_ANSWERED)
        take_answer(r, call, now_ms);
    else if (call->end == CALL_ABORTED)
        r->kind = CALL_RESULT_NOTHING;
    else
        http_step_refuse(r, call->end, call->detail);
}

/* --- the kind --- */

static struct call_job *call_of(struct outgoing_job *job)
{
    return CONTAINER_OF(job, struct call_job, out);
}

static void refuse(struct outgoing_job *job, enum call_end end, const char *why)
{
    http_step_refuse(&call_of(job)->result, end, why);
}

static struct http_call *shape(struct outgoing_job *job, int64_t now_ms)
{
    (void)now_ms;
    struct problem p;
    struct http_call *call = NULL;
    problem_init(&p);
    enum err e = http_step_shape(call_of(job), &p, &call);
    if (e != ERR_OK)
        refuse(job, e == ERR_FIELD_INVALID ? CALL_REQUEST_INVALID : CALL_FAILED, p.detail);
    problem_release(&p);
    return call;
}

static void read_result(struct outgoing_job *job, const struct http_call *call, int64_t now_ms)
{
    struct call_result *r = &call_of(job)->result;
    http_step_take_result(r, call, now_ms);
    job->op.bytes = r->text.len;
}

const struct outgoing_kind HTTP_STEP_CALLS = {
    .name = "http step",
    .take = &UC_TAKE_CALLS,
    .finish = &UC_FINISH_CALL,
    .taken_per_turn_max = CALLS_TAKEN_PER_TURN_MAX,
    .shape = shape,
    .refuse = refuse,
    .read_result = read_result,
};
