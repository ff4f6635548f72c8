/* Writing JSON values, plain or canonical. */
#include "base/json/write.h"

#include "base/json/number.h"
#include "base/json_out.h"

struct writing {
    struct buf *out;
    bool is_canonical;
    bool without_defaults;
    struct str left_out; /* of the outermost object; ptr NULL: none */
};

static void put_value(const struct writing *w, const struct json *value);

static void put_text(struct buf *out, const struct json *text)
{
    char *place = text->is_plain ? buf_extend(out, (size_t)text->count + 2) : NULL;
    if (place == NULL) {
        json_put_text(out, json_text_of(text));
        return;
    }
    place[0] = '"';
    memcpy(place + 1, text->text, text->count);
    place[text->count + 1] = '"';
}

static void put_name(struct buf *out, const struct json *name, bool comma)
{
    char *place = name->is_plain ? buf_extend(out, (size_t)name->count + 3 + comma) : NULL;
    if (place == NULL) {
        buf_put(out, comma ? STR(",") : STR(""));
        json_put_text(out, json_text_of(name));
        buf_put_char(out, ':');
        return;
    }
    *place = ',';
    place += comma;
    place[0] = '"';
    memcpy(place + 1, name->text, name->count);
    place[name->count + 1] = '"';
    place[name->count + 2] = ':';
}

static bool is_left_out(const struct writing *w, const struct json *name)
{
    return (w->without_defaults && name->is_default) ||
           (w->left_out.ptr != NULL && str_eq(w->left_out, json_text_of(name)));
}

static void put_members(const struct writing *w, const struct json *object)
{
    const uint32_t *order = json_order(object);
    const struct writing inner = {w->out, w->is_canonical, w->without_defaults, STR_NONE};
    bool comma = false;
    buf_put_char(w->out, '{');
    for (uint32_t i = 0; i < object->count; i++) {
        const struct json *name = &object->items[2 * (size_t)(w->is_canonical ? order[i] : i)];
        if (is_left_out(w, name))
            continue;
        put_name(w->out, name, comma);
        comma = true;
        put_value(&inner, name + 1);
    }
    buf_put_char(w->out, '}');
}

static void put_elements(const struct writing *w, const struct json *list)
{
    const struct writing inner = {w->out, w->is_canonical, w->without_defaults, STR_NONE};
    buf_put_char(w->out, '[');
    for (uint32_t i = 0; i < list->count; i++) {
        if (i > 0)
            buf_put_char(w->out, ',');
        put_value(&inner, &list->items[i]);
    }
    buf_put_char(w->out, ']');
}

static void put_real(const struct writing *w, double value)
{
    size_t before = w->out->len;
    json_put_double(w->out, value);
    if (w->is_canonical || !buf_ok(w->out))
        return;
    /* A reader that tells 1.0 from 1 gets back what was sent. */
    for (size_t i = before; i < w->out->len; i++) {
        if (w->out->ptr[i] == '.' || w->out->ptr[i] == 'e')
            return;
    }
    buf_put(w->out, STR(".0"));
}

/* The reader bounds the depth, so recursion is bounded too. */
static void put_value(const struct writing *w, const struct json *value)
{
    switch ((enum json_kind)value->kind) {
    case JSON_KIND_NULL:
        buf_put(w->out, STR("null"));
        return;
    case JSON_KIND_FALSE:
        buf_put(w->out, STR("false"));
        return;
    case JSON_KIND_TRUE:
        buf_put(w->out, STR("true"));
        return;
    case JSON_KIND_INTEGER:
        buf_put_i64(w->out, value->integer);
        return;
    case JSON_KIND_REAL:
        put_real(w, value->real);
        return;
    case JSON_KIND_TEXT:
        put_text(w->out, value);
        return;
    case JSON_KIND_LIST:
        put_elements(w, value);
        return;
    case JSON_KIND_OBJECT:
        put_members(w, value);
        return;
    }
    assert(!"unknown kind");
}

void json_write_plain(struct buf *out, const struct json *value)
{
    const struct writing w = {out, false, false, STR_NONE};
    put_value(&w, value);
}

void json_write_canonical(struct buf *out, const struct json *value)
{
    json_write_canonical_without(out, value, STR_NONE, false);
}

void json_write_canonical_without(struct buf *out, const struct json *value, struct str left_out,
                                  bool without_defaults)
{
    const struct writing w = {out, true, without_defaults, left_out};
    put_value(&w, value);
}
