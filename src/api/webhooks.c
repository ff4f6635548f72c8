/* Routes of webhooks. */
#include "api/call.h"

#include "domain/type_pattern.h"

/* The patterns, as they are kept: with commas between them. */
static enum err read_patterns(struct call *c, struct fields *f, const json_t *events,
                              struct str *ret)
{
    struct buf list;
    if (events == NULL || f->err != ERR_OK)
        return ERR_OK;
    buf_init(&list, WEBHOOK_EVENTS_MAX * (NAME_MAX_LEN + 3));
    for (size_t i = 0; i < json_array_size(events); i++) {
        struct str pattern = json_str(json_array_get(events, i));
        if (pattern.ptr == NULL || !type_pattern_ok(pattern)) {
            fields_fault(f, "events", "must be types of events as run.created, run.* or *");
            break;
        }
        if (i > 0)
            buf_put_char(&list, ',');
        buf_put(&list, pattern);
    }
    if (f->err == ERR_OK && list.len == 0)
        fields_fault(f, "events", "must name at least one type of events, or *");
    *ret = f->err == ERR_OK && buf_ok(&list) ? arena_str(&c->req->arena, buf_str(&list)) : STR_NONE;
    buf_release(&list);
    return f->err != ERR_OK || ret->ptr != NULL ? ERR_OK : call_no_memory(c);
}

static enum err read_settings(struct call *c, struct fields *f, struct put_webhook_input *in)
{
    const json_t *events;
    fields_text(f, "url", WEBHOOK_URL_MAX, &in->url);
    fields_array(f, "events", WEBHOOK_EVENTS_MAX, &events);
    fields_text(f, "description", TEXT_MAX, &in->description);
    return read_patterns(c, f, events, &in->events);
}

enum err prepare_create_webhook(struct call *c)
{
    struct put_webhook_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    struct fields f;
    call_fields(c, &f, c->body);
    enum err e = read_settings(c, &f, in);
    fields_require(&f, "url");
    fields_require(&f, "events");
    enum err ended = fields_end(&f);
    return ended == ERR_OK ? e : ended;
}

enum err prepare_put_webhook(struct call *c)
{
    struct put_webhook_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    const json_t *enabled;
    struct fields f;
    call_fields(c, &f, c->body);
    enum err e = read_settings(c, &f, in);
    fields_any(&f, "enabled", &enabled);
    if (json_is_boolean(enabled))
        in->enabled = json_is_true(enabled) ? WEBHOOK_ENABLE : WEBHOOK_DISABLE;
    else if (json_is_null(enabled))
        fields_default(&f, "enabled");
    else if (enabled != NULL)
        fields_fault(&f, "enabled", "must be true or false");
    enum err ended = fields_end(&f);
    if (ended != ERR_OK || e != ERR_OK)
        return ended != ERR_OK ? ended : e;
    return call_uuid(c, ERR_WEBHOOK_NOT_FOUND, &in->webhook_id);
}

enum err prepare_rotate_webhook(struct call *c)
{
    struct rotate_webhook_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    int64_t keep_s = WEBHOOK_OLD_SECRET_S;
    struct fields f;
    call_fields(c, &f, c->body);
    fields_int(&f, "old_secret_s", 0, WEBHOOK_OLD_SECRET_S_MAX, &keep_s);
    in->keep_ms = keep_s * 1000;
    enum err e = fields_end(&f);
    return e == ERR_OK ? call_uuid(c, ERR_WEBHOOK_NOT_FOUND, &in->webhook_id) : e;
}

static enum err no_fields(struct call *c)
{
    struct fields f;
    call_fields(c, &f, c->body);
    return fields_end(&f);
}

enum err prepare_webhook(struct call *c)
{
    struct webhook_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    enum err e = no_fields(c);
    return e == ERR_OK ? call_uuid(c, ERR_WEBHOOK_NOT_FOUND, &in->webhook_id) : e;
}

enum err prepare_list_deliveries(struct call *c)
{
    static const char *const KNOWN[] = {"limit", "cursor", NULL};
    struct list_deliveries_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    enum err e = http_query_only(c->req, KNOWN, &c->op.problem);
    if (e == ERR_OK)
        e = call_page(c, &in->limit, &in->cursor);
    return e == ERR_OK ? call_uuid(c, ERR_WEBHOOK_NOT_FOUND, &in->webhook_id) : e;
}

enum err prepare_delivery(struct call *c)
{
    struct delivery_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    enum err e = no_fields(c);
    if (e == ERR_OK)
        e = call_uuid(c, ERR_WEBHOOK_NOT_FOUND, &in->webhook_id);
    if (e == ERR_OK && !uuid_parse(c->params[1], &in->delivery_id))
        return problem_set(&c->op.problem, ERR_DELIVERY_NOT_FOUND, "\"%.*s\" is not an id",
                           (int)MIN(c->params[1].len, (size_t)64), c->params[1].ptr);
    return e;
}
