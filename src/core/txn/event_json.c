/* An event of a timeline as it is published. */
#include "core/txn/event_json.h"

#include "core/txn/render.h"
#include "domain/timeline.h"

#include <ctype.h>

/* Every character of an entity's name written as three. */
enum { SOURCE_MAX = TENANT_ID_MAX + NAME_MAX_LEN + 3 * ENTITY_ID_MAX + 64 };

void event_json_init(struct event_json *out)
{
    *out = (struct event_json){0};
    buf_init(&out->body, EVENT_OUT_MAX);
}

void event_json_release(struct event_json *out)
{
    buf_release(&out->body);
}

/* 0 for a type that this version does not know. */
static unsigned flags_of(const struct event *event)
{
    enum event_type type = event_type_of(event->type);
    return type < EVENT_TYPE_COUNT ? event_type_flags(type) : 0;
}

struct str event_published_type(const struct event *event)
{
    return flags_of(event) & EVENT_NAMED_BY_USER ? event->published_as : event->type;
}

/* --- the data --- */

static void put_names(struct json_out *o, const struct event_source *source, int64_t seq,
                      unsigned flags)
{
    const struct owner *owner = &source->owner;
    if (owner->is_entity) {
        json_add_text(o, "entity_type", owner->type);
        json_add_text(o, "entity_id", owner->name);
    } else {
        json_add_uuid(o, "run_id", owner->id);
        if (!(flags & EVENT_SAYS_WORKFLOW))
            json_add_text(o, "workflow_id", owner->workflow_id);
    }
    json_add_int(o, "seq", seq);
}

/* The timeline's members follow as they are stored: none of them has one of the names above. */
static void put_data(struct json_out *o, const struct event_source *source,
                     const struct event *event, unsigned flags)
{
    json_open(o, "data", '{');
    put_names(o, source, event->seq, flags);
    if (event->data.len > 2) { /* not {} */
        buf_put_char(o->buf, ',');
        buf_put_bytes(o->buf, event->data.ptr + 1, event->data.len - 2);
    }
    json_close(o, '}');
}

/* --- the frame --- */

/* As one segment of the path of a URI. */
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
                      const struct event *event, unsigned flags)
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
    put_data(&o, source, event, flags);
    json_close(&o, '}');
}

/* --- id and type --- */

static bool keep(char *to, size_t size, struct str text)
{
    if (text.len == 0 || text.len >= size)
        return false;
    memcpy(to, text.ptr, text.len);
    to[text.len] = '\0';
    return true;
}

static enum err put_id(struct event_json *out, const struct event_source *source,
                       const struct event *event, unsigned flags)
{
    struct buf id;
    if (flags & EVENT_NAMED_BY_JOB && event->published_as.len != UUID_TEXT_LEN)
        return ERR_INTERNAL;
    buf_init(&id, EVENT_ID_MAX);
    if (flags & EVENT_NAMED_BY_JOB) {
        buf_put(&id, STR("approval:"));
        buf_put(&id, event->published_as);
    } else {
        buf_put_uuid(&id, source->owner.id);
        buf_put_char(&id, ':');
        buf_put_i64(&id, event->seq);
    }
    enum err e = buf_ok(&id) ? ERR_OK : ERR_NO_MEMORY;
    if (e == ERR_OK && !keep(out->id, sizeof(out->id), buf_str(&id)))
        e = ERR_INTERNAL;
    buf_release(&id);
    return e;
}

enum err event_json_fill(struct event_json *out, const struct event_source *source,
                         const struct event *event)
{
    struct str data = event->data;
    unsigned flags = flags_of(event);
    bool is_object = data.len == 0 || (data.ptr[0] == '{' && data.ptr[data.len - 1] == '}');
    if (!is_object || source->tenant.len > TENANT_ID_MAX ||
        !keep(out->type, sizeof(out->type), event_published_type(event)))
        return ERR_INTERNAL;
    enum err e = put_id(out, source, event, flags);
    if (e != ERR_OK)
        return e;
    put_frame(out, source, event, flags);
    return buf_ok(&out->body) ? ERR_OK : ERR_NO_MEMORY;
}
