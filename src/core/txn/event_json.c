/* An event of a timeline as the world is told of it. */
#define _GNU_SOURCE /* memmem */
#include "core/txn/event_json.h"

#include "core/txn/render.h"

#include <ctype.h>

/* Every character of an entity's name written as three. */
enum { SOURCE_MAX = TENANT_ID_MAX + NAME_MAX_LEN + 3 * ENTITY_ID_MAX + 64 };

/* What every event's data says, whatever else is in it. */
enum { OURS_COUNT = 3 };
static const char *const OF_RUN[OURS_COUNT] = {"run_id", "workflow_id", "seq"};
static const char *const OF_ENTITY[OURS_COUNT] = {"entity_type", "entity_id", "seq"};

void event_json_init(struct event_json *out)
{
    *out = (struct event_json){0};
    buf_init(&out->body, EVENT_OUT_MAX);
}

void event_json_release(struct event_json *out)
{
    buf_release(&out->body);
}

/* --- the data --- */

static const char *const *ours(const struct event_source *source)
{
    return source->owner.is_entity ? OF_ENTITY : OF_RUN;
}

static bool mentions_ours(const struct event_source *source, struct str data)
{
    const char *const *names = ours(source);
    for (size_t i = 0; i < OURS_COUNT; i++) {
        if (memmem(data.ptr, data.len, names[i], strlen(names[i])) != NULL)
            return true;
    }
    return false;
}

static bool is_ours(const struct event_source *source, const char *name)
{
    const char *const *names = ours(source);
    for (size_t i = 0; i < OURS_COUNT; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static bool is_said_already(const struct event_source *source, const char *name,
                            const json_t *value)
{
    return !source->owner.is_entity && strcmp(name, "workflow_id") == 0 &&
           str_eq(json_str(value), source->owner.workflow_id);
}

static void put_members(struct json_out *o, const struct event_source *source, json_t *data)
{
    const char *name;
    json_t *value;
    json_object_foreach (data, name, value) {
        if (is_said_already(source, name, value))
            continue;
        buf_put_char(o->buf, ',');
        buf_put(o->buf, is_ours(source, name) ? STR("\"data_") : STR("\""));
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

static void put_ours(struct json_out *o, const struct event_source *source, int64_t seq)
{
    const struct owner *owner = &source->owner;
    const char *const *names = ours(source);
    if (owner->is_entity) {
        json_add_text(o, names[0], owner->type);
        json_add_text(o, names[1], owner->name);
    } else {
        json_add_uuid(o, names[0], owner->id);
        json_add_text(o, names[1], owner->workflow_id);
    }
    json_add_int(o, names[2], seq);
}

/* `parsed` is NULL where the text can go out as it is. */
static void put_data(struct json_out *o, const struct event_source *source,
                     const struct event *event, json_t *parsed)
{
    json_open(o, "data", '{');
    put_ours(o, source, event->seq);
    if (parsed != NULL) {
        put_members(o, source, parsed);
    } else if (event->data.len > 2) { /* not {} */
        buf_put_char(o->buf, ',');
        buf_put_bytes(o->buf, event->data.ptr + 1, event->data.len - 2);
    }
    json_close(o, '}');
}

/* --- the frame --- */

/* As one segment of a URI's path. */
static void put_segment(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (isalnum(c) || (c != '\0' && strchr("-._~", c) != NULL))
            buf_put_char(out, (char)c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

static void put_source(struct json_out *o, const struct event_source *source)
{
    const struct owner *owner = &source->owner;
    struct buf text;
    buf_init(&text, SOURCE_MAX);
    buf_printf(&text, "/pawl/%.*s/", STR_ARG(source->tenant));
    if (owner->is_entity) {
        buf_printf(&text, "entities/%.*s/", STR_ARG(owner->type));
        put_segment(&text, owner->name);
    } else {
        buf_put(&text, STR("runs/"));
        buf_put_uuid(&text, owner->id);
    }
    if (buf_ok(&text))
        json_add_text(o, "source", buf_str(&text));
    o->buf->failed |= !buf_ok(&text);
    buf_release(&text);
}

static void put_subject(struct json_out *o, const struct event_source *source)
{
    const struct owner *owner = &source->owner;
    struct buf text;
    if (!owner->is_entity) {
        json_add_uuid(o, "subject", owner->id);
        return;
    }
    buf_init(&text, SOURCE_MAX);
    buf_printf(&text, "%.*s/%.*s", STR_ARG(owner->type), STR_ARG(owner->name));
    if (buf_ok(&text))
        json_add_text(o, "subject", buf_str(&text));
    o->buf->failed |= !buf_ok(&text);
    buf_release(&text);
}

static void put_frame(struct event_json *out, const struct event_source *source,
                      const struct event *event, json_t *parsed)
{
    struct json_out o = json_out_to(&out->body);
    buf_clear(&out->body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "specversion", STR("1.0"));
    json_add_text(&o, "id", str_of(out->id));
    put_source(&o, source);
    json_add_text(&o, "type", str_of(out->type));
    put_subject(&o, source);
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

static bool name_id(struct event_json *out, const struct event_source *source,
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
        buf_put_uuid(&id, source->owner.id);
        buf_put_char(&id, ':');
        buf_put_i64(&id, event->seq);
    }
    bool ok = buf_ok(&id) && keep(out->id, sizeof(out->id), buf_str(&id));
    buf_release(&id);
    return ok;
}

static bool name_type(struct event_json *out, const struct event *event, const json_t *parsed)
{
    struct str type = event->type;
    if (str_is(type, "event.emitted"))
        type = json_str(json_object_get(parsed, "event"));
    return type.len > 0 && keep(out->type, sizeof(out->type), type);
}

enum err event_json_fill(struct event_json *out, const struct event_source *source,
                         const struct event *event)
{
    struct str data = event->data;
    bool is_object = data.len == 0 || (data.ptr[0] == '{' && data.ptr[data.len - 1] == '}');
    if (!is_object || source->tenant.len > TENANT_ID_MAX)
        return ERR_INTERNAL;
    json_t *parsed = NULL;
    if (data.len > 0 && (mentions_ours(source, data) || str_is(event->type, "event.emitted") ||
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
