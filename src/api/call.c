/* What handlers use to read a request. */
#include "api/call.h"

#include "domain/entity/dedup.h"

enum err call_no_memory(struct call *c)
{
    return problem_set(&c->op.problem, ERR_NO_MEMORY, "no memory for the request");
}

void call_fields(struct call *c, struct fields *f, const json_t *object)
{
    fields_begin(f, object, &c->op.problem);
    f->defaults = &c->defaults;
}

void *call_alloc(struct call *c, size_t size)
{
    void *out = arena_alloc(&c->req->arena, size);
    if (out == NULL)
        (void)call_no_memory(c);
    return out;
}

enum err call_uuid(struct call *c, enum err missing, struct uuid *ret)
{
    if (uuid_parse(c->params[0], ret))
        return ERR_OK;
    return problem_set(&c->op.problem, missing, "\"%.*s\" is not an id",
                       (int)MIN(c->params[0].len, (size_t)64), c->params[0].ptr);
}

enum err call_name(struct call *c, size_t max, struct str *ret)
{
    if (c->params[0].len > max || !str_is_name(c->params[0]))
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "a name is made of up to %zu letters, digits or _ - . :", max);
    *ret = c->params[0];
    return ERR_OK;
}

enum err call_query_int(struct call *c, const char *name, int64_t min, int64_t max, int64_t *ret)
{
    struct str text;
    enum err e = http_query(c->req, name, &c->op.problem, &text);
    if (e != ERR_OK || text.ptr == NULL)
        return e;
    int64_t value;
    if (!str_to_i64(text, &value) || value < min || value > max)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "%s must be a whole number from %lld to %lld", name, (long long)min,
                           (long long)max);
    *ret = value;
    return ERR_OK;
}

enum err call_page(struct call *c, int64_t *ret_limit, struct str *ret_cursor)
{
    *ret_limit = PAGE_DEFAULT;
    enum err e = call_query_int(c, "limit", 1, PAGE_MAX, ret_limit);
    if (e == ERR_OK)
        e = http_query(c->req, "cursor", &c->op.problem, ret_cursor);
    if (e == ERR_OK && ret_cursor->ptr != NULL &&
        (ret_cursor->len == 0 || ret_cursor->len >= CURSOR_MAX))
        return problem_set(&c->op.problem, ERR_CURSOR_INVALID, "cursor is not from this list");
    return e;
}

enum err call_if_match(struct call *c, int64_t *ret)
{
    size_t count;
    struct str text = str_trim(http_header(c->req, "If-Match", &count));
    *ret = -1;
    if (count == 0 || str_is(text, "*"))
        return ERR_OK;
    if (count == 1 && text.len > 2 && text.ptr[0] == '"' && text.ptr[text.len - 1] == '"' &&
        str_to_i64((struct str){text.ptr + 1, text.len - 2}, ret) && *ret >= 0)
        return ERR_OK;
    return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                       "If-Match must be a run's version in quotes, as \"7\"");
}

/* Every answer to a start has one: written by hand, it costs a sixth of snprintf(). */
struct str call_etag(struct call *c, int64_t version)
{
    char tag[24];
    char *at = tag + sizeof(tag);
    assert(version >= 0);
    *--at = '"';
    do {
        *--at = (char)('0' + version % 10);
        version /= 10;
    } while (version > 0);
    *--at = '"';
    return arena_str(&c->req->arena, (struct str){at, (size_t)(tag + sizeof(tag) - at)});
}

bool call_has_version(struct call *c, int64_t version)
{
    size_t count;
    struct str rest = str_trim(http_header(c->req, "If-None-Match", &count));
    struct str wanted = call_etag(c, version);
    if (count != 1) /* two lines name nothing for sure: the whole answer is right as well */
        return false;
    if (str_is(rest, "*"))
        return true;
    while (rest.len > 0) {
        struct str tag;
        (void)str_cut(rest, ',', &tag, &rest);
        tag = str_trim(tag);
        if (str_starts_with(tag, STR("W/")))
            tag = (struct str){tag.ptr + 2, tag.len - 2};
        if (str_eq(tag, wanted))
            return true;
    }
    return false;
}

static enum err read_payload(struct call *c, const json_t *payload, struct signal_fields *ret)
{
    ret->payload = STR("null");
    enum err e = payload != NULL ? call_json_text(c, payload, &ret->payload) : ERR_OK;
    if (e == ERR_OK && ret->payload.len > JOB_OUTPUT_MAX)
        return problem_set(&c->op.problem, ERR_BODY_TOO_LARGE, "payload may have at most %d bytes",
                           JOB_OUTPUT_MAX);
    return e == ERR_OK ? dedup_request(ret->name, payload, &c->op.problem, &ret->request) : e;
}

enum err call_signal(struct call *c, bool needs_key, struct signal_fields *ret)
{
    const json_t *payload;
    struct fields f;
    *ret = (struct signal_fields){0};
    call_fields(c, &f, c->body);
    fields_name(&f, "name", NAME_MAX_LEN, &ret->name);
    fields_require(&f, "name");
    fields_any(&f, "payload", &payload);
    if (json_is_null(payload))
        fields_default(&f, "payload");
    fields_text(&f, "dedup_key", IDEM_KEY_MAX, &ret->dedup_key);
    if (needs_key)
        fields_require(&f, "dedup_key");
    if (ret->dedup_key.ptr != NULL && ret->dedup_key.len == 0)
        fields_fault(&f, "dedup_key", "must not be empty");
    enum err e = fields_end(&f);
    return e == ERR_OK ? read_payload(c, payload, ret) : e;
}

enum err call_json_text(struct call *c, const json_t *value, struct str *ret)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    json_put_plain(&text, value);
    size_t len = text.len;
    bool fits = buf_ok(&text) && len <= JSON_KEPT_MAX;
    *ret = fits ? arena_str(&c->req->arena, buf_str(&text)) : STR_NONE;
    buf_release(&text);
    if (len > JSON_KEPT_MAX)
        return problem_set(
            &c->op.problem, ERR_BODY_TOO_LARGE,
            "numbers such as 1e20 make the value too large when they are written out");
    return ret->ptr != NULL ? ERR_OK : call_no_memory(c);
}
