/* What every part of the api layer uses of a request. */
#include "api/call.h"

enum err call_no_memory(struct call *c)
{
    return problem_set(&c->op.problem, ERR_NO_MEMORY, "No memory for the request");
}

void *call_alloc(struct call *c, size_t size)
{
    void *out = arena_alloc(&c->req->arena, size);
    if (out == NULL)
        (void)call_no_memory(c);
    return out;
}

void *call_input(struct call *c)
{
    if (c->input == NULL && c->route->input_size > 0)
        c->op.input = c->input = call_alloc(c, c->route->input_size);
    return c->input;
}

enum err call_header(struct call *c, const char *name, struct str *ret)
{
    size_t count;
    struct str value = str_trim(http_header(c->req, name, &count));
    if (count > 1)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST, "The header %s is sent twice", name);
    *ret = STR_NONE;
    if (count == 0)
        return ERR_OK;
    *ret = arena_str(&c->req->arena, value);
    return ret->ptr != NULL ? ERR_OK : call_no_memory(c);
}

/* Most clients write JSON as it is kept. */
static struct str text_in_body(const struct call *c, const struct json *value)
{
    size_t count = json_members(c->body);
    for (size_t i = 0; i < count; i++) {
        if (json_value_at(c->body, i) == value)
            return json_plain_source(c->body, i, c->req->body);
    }
    return STR_NONE;
}

enum err call_json_text(struct call *c, const struct json *value, struct str *ret)
{
    *ret = text_in_body(c, value);
    if (ret->ptr != NULL)
        return ERR_OK;
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    json_write_plain(&text, value);
    size_t len = text.len;
    bool fits = buf_ok(&text) && len <= JSON_KEPT_MAX;
    *ret = fits ? arena_str(&c->req->arena, buf_str(&text)) : STR_NONE;
    buf_release(&text);
    if (len > JSON_KEPT_MAX)
        return problem_set(&c->op.problem, ERR_BODY_TOO_LARGE,
                           "The value is too large once numbers such as 1e20 are written out");
    return ret->ptr != NULL ? ERR_OK : call_no_memory(c);
}

/* --- replies --- */

bool call_tags_name(struct str tags, struct str etag)
{
    if (str_is(tags, "*"))
        return true;
    while (tags.len > 0) {
        struct str tag;
        (void)str_cut(tags, ',', &tag, &tags);
        tag = str_trim(tag);
        if (str_starts_with(tag, STR("W/")))
            tag = (struct str){tag.ptr + 2, tag.len - 2};
        if (str_eq(tag, etag))
            return true;
    }
    return false;
}

static struct str label(const struct call *c)
{
    return c->route != NULL ? str_of(c->route->pattern) : STR_NONE;
}

struct http_reply call_reply(const struct call *c, int status, struct str content_type,
                             struct str body)
{
    struct http_reply reply;
    http_reply_init(&reply, status, content_type, body);
    reply.route = label(c);
    return reply;
}

void call_send_json(struct call *c, int status, struct str body)
{
    struct http_reply reply = call_reply(c, status, STR("application/json"), body);
    http_send(c->req, &reply);
}

void call_send_other_problem(struct call *c, const struct problem *p)
{
    http_send_problem(c->req, p, label(c), NULL);
}

void call_send_problem(struct call *c)
{
    call_send_other_problem(c, &c->op.problem);
}
