/* An event of a run's timeline as the world is told of it. */
#define _GNU_SOURCE /* memmem */
#include "engine/event_out.h"

#include "engine/render.h"

/* What every event's data says, whatever else is in it. */
static const char *const OURS[] = {"run_id", "workflow_id", "seq"};

void event_out_init(struct event_out *out)
{
    *out = (struct event_out){0};
    buf_init(&out->body, EVENT_OUT_MAX);
}

void event_out_release(struct event_out *out)
{
    buf_release(&out->body);
}

/* --- the data --- */

static bool mentions_ours(struct str data)
{
    for (size_t i = 0; i < ARRAY_LEN(OURS); i++) {
        if (memmem(data.ptr, data.len, OURS[i], strlen(OURS[i])) != NULL)
            return true;
    }
    return false;
}

static bool is_ours(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(OURS); i++) {
        if (strcmp(name, OURS[i]) == 0)
            return true;
    }
    return false;
}

static void put_members(struct json_out *o, const struct event_source *source, json_t *data)
{
    const char *name;
    json_t *value;
    json_object_foreach (data, name, value) {
        if (strcmp(name, "workflow_id") == 0 && str_eq(json_str(value), source->workflow_id))
            continue; /* said already */
        buf_put_char(o->buf, ',');
        buf_put(o->buf, is_ours(name) ? STR("\"data_") : STR("\""));
        /* Escaped as a text is, without the quotation mark that is there already. */
        struct buf quoted;
        buf_init(&quoted, JSON_WRITTEN_MAX);
        json_put_text(&quoted, str_of(name));
        if (buf_ok(&quoted))
            buf_put_bytes(o->buf, quoted.ptr + 1, quoted.len - 1);
        else
            o->buf->failed = true;
        buf_release(&quoted);
        buf_put_char(o->buf, ':');
        json_put_plain(o->buf, value);
    }
}

/* `parsed` is NULL where the text can go out as it is. */
static void put_data(struct json_out *o, const struct event_source *source,
                     const struct event *event, json_t *parsed)
{
    json_open(o, "data", '{');
    json_add_uuid(o, "run_id", source->run_id);
    json_add_text(o, "workflow_id", source->workflow_id);
    json_add_int(o, "seq", event->seq);
    if (parsed != NULL) {
        put_members(o, source, parsed);
    } else if (event->data.len > 2) { /* not {} */
        buf_put_char(o->buf, ',');
        buf_put_bytes(o->buf, event->data.ptr + 1, event->data.len - 2);
    }
    json_close(o, '}');
}

/* --- the frame --- */

static void put_source(struct json_out *o, const struct event_source *source)
{
    char text[sizeof("/pawl//runs/") + TENANT_ID_MAX + UUID_TEXT_LEN];
    struct buf id;
    buf_init(&id, UUID_TEXT_LEN);
    buf_put_uuid(&id, source->run_id);
    int len = snprintf(text, sizeof(text), "/pawl/%.*s/runs/%s", STR_ARG(source->tenant),
                       buf_ok(&id) ? id.ptr : "");
    o->buf->failed |= !buf_ok(&id);
    buf_release(&id);
    assert(len > 0 && (size_t)len < sizeof(text));
    json_add_text(o, "source", (struct str){text, (size_t)len});
}

static void put_frame(struct event_out *out, const struct event_source *source,
                      const struct event *event, json_t *parsed)
{
    struct json_out o = json_out_to(&out->body);
    buf_clear(&out->body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "specversion", STR("1.0"));
    json_add_text(&o, "id", str_of(out->id));
    put_source(&o, source);
    json_add_text(&o, "type", str_of(out->type));
    json_add_uuid(&o, "subject", source->run_id);
    json_add_time(&o, "time", event->at);
    json_add_text(&o, "datacontenttype", STR("application/json"));
    put_data(&o, source, event, parsed);
    json_close(&o, '}');
}

/* --- id and type --- */

static bool keep(char *to, size_t size, struct str text)
{
    if (text.len >= size)
        return false;
    memcpy(to, text.ptr, text.len);
    to[text.len] = '\0';
    return true;
}

static bool name_id(struct event_out *out, const struct event_source *source,
                    const struct event *event, const json_t *parsed)
{
    struct buf id;
    buf_init(&id, EVENT_ID_MAX);
    if (str_is(event->type, "job.approved")) {
        struct str job_id = json_str(json_object_get(parsed, "job_id"));
        if (job_id.len != UUID_TEXT_LEN)
            return false;
        buf_put(&id, STR("approval:"));
        buf_put(&id, job_id);
    } else {
        buf_put_uuid(&id, source->run_id);
        buf_put_char(&id, ':');
        buf_put_i64(&id, event->seq);
    }
    bool ok = buf_ok(&id) && keep(out->id, sizeof(out->id), buf_str(&id));
    buf_release(&id);
    return ok;
}

static bool name_type(struct event_out *out, const struct event *event, const json_t *parsed)
{
    struct str type = event->type;
    if (str_is(type, "event.emitted"))
        type = json_str(json_object_get(parsed, "event"));
    return type.len > 0 && keep(out->type, sizeof(out->type), type);
}

enum err event_out_fill(struct event_out *out, const struct event_source *source,
                        const struct event *event)
{
    struct str data = event->data;
    bool is_object = data.len == 0 || (data.ptr[0] == '{' && data.ptr[data.len - 1] == '}');
    if (!is_object || source->tenant.len > TENANT_ID_MAX)
        return ERR_INTERNAL;
    json_t *parsed = NULL;
    if (data.len > 0 && (mentions_ours(data) || str_is(event->type, "event.emitted") ||
                         str_is(event->type, "job.approved"))) {
        /* Written by us: what a request may not have, as depth, was looked at on its way in. */
        parsed = json_loadb(data.ptr, data.len, JSON_ALLOW_NUL, NULL);
        if (parsed == NULL)
            return ERR_INTERNAL;
    }
    enum err e = ERR_INTERNAL;
    if (name_id(out, source, event, parsed) && name_type(out, event, parsed)) {
        put_frame(out, source, event, parsed);
        e = buf_ok(&out->body) ? ERR_OK : ERR_NO_MEMORY;
    }
    json_decref(parsed);
    return e;
}
