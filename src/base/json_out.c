/* Writes JSON text member by member. */
#include "base/json_out.h"

#include <endian.h>

/* A high bit at the first of eight bytes that must be escaped: a control character, a quote or a
 * backslash. Bits above it mean nothing; 0: none must be. */
static uint64_t escape_bits(uint64_t bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t quote = bytes ^ ones * '"';
    uint64_t backslash = bytes ^ ones * '\\';
    return (((bytes - ones * 0x20) & ~bytes) | ((quote - ones) & ~quote) |
            ((backslash - ones) & ~backslash)) &
           ones * 0x80;
}

static size_t unescaped_length(const char *text, size_t len)
{
    size_t i = 0;
    for (uint64_t bytes; len - i >= sizeof(bytes); i += sizeof(bytes)) {
        memcpy(&bytes, text + i, sizeof(bytes));
        uint64_t bits = escape_bits(le64toh(bytes));
        if (bits != 0)
            return i + (size_t)__builtin_ctzll(bits) / 8;
    }
    if (i > 0) { /* the rest, with some of what was looked at */
        uint64_t bytes;
        memcpy(&bytes, text + len - sizeof(bytes), sizeof(bytes));
        if (escape_bits(le64toh(bytes)) == 0)
            return len;
    }
    while (i < len && (unsigned char)text[i] >= 0x20 && text[i] != '"' && text[i] != '\\')
        i++;
    return i;
}

static void put_escape(struct buf *out, unsigned char c)
{
    static const char HEX[] = "0123456789abcdef";
    static const char SHORT[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* the character, and its letter */
    for (size_t i = 0; i + 1 < sizeof(SHORT); i += 2) {
        if ((unsigned char)SHORT[i] == c) {
            char escape[2] = {'\\', SHORT[i + 1]};
            buf_put_bytes(out, escape, sizeof(escape));
            return;
        }
    }
    char escape[6] = {'\\', 'u', '0', '0', HEX[c >> 4], HEX[c & 15]};
    buf_put_bytes(out, escape, sizeof(escape));
}

/* Most texts need no escapes: they are copied at once. */
void json_put_text(struct buf *out, struct str text)
{
    size_t plain = unescaped_length(text.ptr, text.len);
    if (plain == text.len) {
        char *at = buf_extend(out, text.len + 2);
        if (at == NULL)
            return;
        at[0] = at[text.len + 1] = '"';
        if (text.len > 0)
            memcpy(at + 1, text.ptr, text.len);
        return;
    }
    buf_put_char(out, '"');
    for (size_t from = 0; from < text.len;) {
        size_t len = unescaped_length(text.ptr + from, text.len - from);
        buf_put_bytes(out, text.ptr + from, len);
        from += len;
        if (from < text.len)
            put_escape(out, (unsigned char)text.ptr[from++]);
    }
    buf_put_char(out, '"');
}

void json_add_name_growing(struct json_out *o, const char *name)
{
    if (o->comma)
        buf_put_char(o->buf, ',');
    o->comma = true;
    if (name == NULL)
        return;
    buf_put_char(o->buf, '"');
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

void json_add_text_or_null(struct json_out *o, const char *name, struct str value)
{
    if (value.ptr == NULL)
        json_add_null(o, name);
    else
        json_add_text(o, name, value);
}

void json_add_bool(struct json_out *o, const char *name, bool value)
{
    json_add_name(o, name);
    buf_put(o->buf, value ? STR("true") : STR("false"));
}
