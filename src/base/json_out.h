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

/* In all of these name is NULL inside an array; a literal otherwise. */
/* The comma and the name; the caller puts the value. */
void json_add_name(struct json_out *o, const char *name);
void json_open(struct json_out *o, const char *name, char bracket);
void json_close(struct json_out *o, char bracket);
void json_add_text(struct json_out *o, const char *name, struct str value);
void json_add_text_or_null(struct json_out *o, const char *name, struct str value);
void json_add_int(struct json_out *o, const char *name, int64_t value);
void json_add_bool(struct json_out *o, const char *name, bool value);
void json_add_null(struct json_out *o, const char *name);
/* Ready JSON, as kept in the store; empty becomes null. */
void json_add_raw(struct json_out *o, const char *name, struct str json);

#endif
