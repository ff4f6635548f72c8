/* Writes JSON text member by member. */
#include "base/json_out.h"

void json_put_text(struct buf *out, struct str text)
{
    static const char HEX[] = "0123456789abcdef";
    buf_put_char(out, '"');
    size_t from = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        buf_put_bytes(out, text.ptr + from, i - from);
        from = i + 1;
        const char *shorthand = NULL;
        switch (c) {
        case '"':
            shorthand = "\\\"";
            break;
        case '\\':
            shorthand = "\\\\";
            break;
        case '\b':
            shorthand = "\\b";
            break;
        case '\f':
            shorthand = "\\f";
            break;
        case '\n':
            shorthand = "\\n";
            break;
        case '\r':
            shorthand = "\\r";
            break;
        case '\t':
            shorthand = "\\t";
            break;
        default: {
            char escape[6] = {'\\', 'u', '0', '0', HEX[c >> 4], HEX[c & 15]};
            buf_put_bytes(out, escape, sizeof(escape));
        }
        }
        if (shorthand != NULL)
            buf_put_bytes(out, shorthand, 2);
    }
    if (from < text.len)
        buf_put_bytes(out, text.ptr + from, text.len - from);
    buf_put_char(out, '"');
}

void json_add_name(struct json_out *o, const char *name)
{
    bool comma = o->comma;
    o->comma = true;
    if (name == NULL) {
        if (comma)
            buf_put_char(o->buf, ',');
        return;
    }
    buf_put(o->buf, comma ? STR(",\"") : STR("\""));
    buf_put(o->buf, str_of(name));
    buf_put(o->buf, STR("\":"));
}

void json_open(struct json_out *o, const char *name, char bracket)
{
    assert(bracket == '{' || bracket == '[');
    json_add_name(o, name);
    buf_put_char(o->buf, bracket);
    o->comma = false;
}

void json_close(struct json_out *o, char bracket)
{
    assert(bracket == '}' || bracket == ']');
    buf_put_char(o->buf, bracket);
    o->comma = true;
}

void json_add_text(struct json_out *o, const char *name, struct str value)
{
    json_add_name(o, name);
    json_put_text(o->buf, value);
}

void json_add_text_or_null(struct json_out *o, const char *name, struct str value)
{
    if (value.ptr == NULL)
        json_add_null(o, name);
    else
        json_add_text(o, name, value);
}

void json_add_int(struct json_out *o, const char *name, int64_t value)
{
    json_add_name(o, name);
    buf_put_i64(o->buf, value);
}

void json_add_bool(struct json_out *o, const char *name, bool value)
{
    json_add_name(o, name);
    buf_put(o->buf, value ? STR("true") : STR("false"));
}

void json_add_null(struct json_out *o, const char *name)
{
    json_add_name(o, name);
    buf_put(o->buf, STR("null"));
}

void json_add_raw(struct json_out *o, const char *name, struct str json)
{
    json_add_name(o, name);
    buf_put(o->buf, json.len > 0 ? json : STR("null"));
}
