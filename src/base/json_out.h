/* Writes JSON text member by member into a buffer, without building a tree first. */
#ifndef PAWL_BASE_JSON_OUT_H
#define PAWL_BASE_JSON_OUT_H

#include "base/buf.h"

void json_put_text(struct buf *out, struct str text); /* quoted and escaped */

/* Keeps the commas. Every call appends to the buffer; ask buf_ok() at the end. */
struct json_out {
    struct buf *buf;
    bool comma;
};

static inline struct json_out json_out_to(struct buf *b)
{
    return (struct json_out){b, false};
}

/* The slow way of json_add_name(). */
void json_add_name_growing(struct json_out *o, const char *name);

/* In all of these name is NULL inside an array; a literal otherwise, whose length the compiler
 * knows: that is why they are inline. */
/* The comma and the name; the caller puts the value. */
ALWAYS_INLINE void json_add_name(struct json_out *o, const char *name)
{
    struct buf *b = o->buf;
    size_t len = name != NULL ? strlen(name) : 0;
    if (b->failed || len + strlen(",\"\":") >= b->cap - b->len) {
        json_add_name_growing(o, name);
        return;
    }
    char *at = b->ptr + b->len;
    *at = ',';
    at += o->comma;
    o->comma = true;
    if (name != NULL) {
        *at++ = '"';
        memcpy(at, name, len);
        memcpy(at + len, "\":", 2);
        at += len + 2;
    }
    *at = '\0';
    b->len = (size_t)(at - b->ptr);
}

/* Ready JSON, as kept in the store; empty becomes null. */
ALWAYS_INLINE void json_add_raw(struct json_out *o, const char *name, struct str json)
{
    json_add_name(o, name);
    buf_put(o->buf, json.len > 0 ? json : STR("null"));
}

ALWAYS_INLINE void json_add_text(struct json_out *o, const char *name, struct str value)
{
    json_add_name(o, name);
    json_put_text(o->buf, value);
}

ALWAYS_INLINE void json_add_int(struct json_out *o, const char *name, int64_t value)
{
    json_add_name(o, name);
    buf_put_i64(o->buf, value);
}

ALWAYS_INLINE void json_add_null(struct json_out *o, const char *name)
{
    json_add_name(o, name);
    buf_put(o->buf, STR("null"));
}

void json_add_text_or_null(struct json_out *o, const char *name, struct str value);
void json_add_bool(struct json_out *o, const char *name, bool value);
void json_open(struct json_out *o, const char *name, char bracket);
void json_close(struct json_out *o, char bracket);

#endif
