/* A growing byte buffer with a ceiling. Appends never fail one by one: the first that would pass
 * the ceiling or run out of memory marks the buffer as failed, later ones do nothing, and the
 * caller asks once, at the end, with buf_ok(). The text is always NUL-terminated for the debugger's
 * sake. */
#ifndef PAWL_BASE_BUF_H
#define PAWL_BASE_BUF_H

#include "base/str.h"

struct buf {
    char *ptr;
    size_t len;
    size_t cap;
    size_t max;
    bool failed;
    bool refused; /* … at the ceiling, and not because the machine is short of memory */
};

/* Allocates nothing until the first append; max is the largest length it may reach. */
void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b);
/* Empties it and forgets a failure; keeps the memory. */
void buf_clear(struct buf *b);

/* The slow way: grows it, or marks it as failed. */
void buf_put_growing(struct buf *b, const void *bytes, size_t len);

static inline void buf_put_bytes(struct buf *b, const void *bytes, size_t len)
{
    /* cap never passes max + 1, so what fits the memory fits the ceiling. */
    if (len == 0 || b->failed || len >= b->cap - b->len) {
        buf_put_growing(b, bytes, len);
        return;
    }
    memcpy(b->ptr + b->len, bytes, len);
    b->len += len;
    b->ptr[b->len] = '\0';
}

static inline void buf_put(struct buf *b, struct str s)
{
    buf_put_bytes(b, s.ptr, s.len);
}

static inline void buf_put_char(struct buf *b, char c)
{
    buf_put_bytes(b, &c, 1);
}

/* The slow way of buf_extend(). */
char *buf_extend_growing(struct buf *b, size_t len);

/* Appends `len` bytes that the caller fills at once; NULL when it failed. */
MUST_CHECK static inline char *buf_extend(struct buf *b, size_t len)
{
    if (b->failed || len >= b->cap - b->len)
        return buf_extend_growing(b, len);
    char *place = b->ptr + b->len;
    b->len += len;
    b->ptr[b->len] = '\0';
    return place;
}

void buf_put_i64(struct buf *b, int64_t value);
void buf_put_hex(struct buf *b, const void *bytes, size_t len);
/* RFC 4648, with padding. */
void buf_put_base64(struct buf *b, const void *bytes, size_t len);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

static inline bool buf_ok(const struct buf *b)
{
    return !b->failed;
}

static inline struct str buf_str(const struct buf *b)
{
    return (struct str){b->ptr, b->len};
}

#endif
