/* A growing byte buffer with a ceiling and one sticky failure. */
#include "base/buf.h"

#include "base/digits.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUF_FIRST_CAP = 1024 };

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_release(struct buf *b)
{
    free(b->ptr);
    *b = (struct buf){.max = b->max};
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = b->refused = false;
    if (b->ptr != NULL)
        b->ptr[0] = '\0';
}

/* Room for `more` bytes and the closing NUL. */
static bool buf_reserve(struct buf *b, size_t more)
{
    if (b->failed)
        return false;
    if (more > b->max || b->len > b->max - more || more >= SIZE_MAX - b->len) {
        b->failed = b->refused = true;
        return false;
    }
    size_t need = b->len + more + 1;
    if (need <= b->cap)
        return true;
    size_t cap = b->cap == 0 ? BUF_FIRST_CAP : b->cap * 2;
    cap = MAX(cap, need);
    if (cap - 1 > b->max)
        cap = b->max + 1; /* the ceiling and its closing NUL: the inline appends rely on it */
    char *grown = realloc(b->ptr, cap);
    if (grown == NULL) {
        b->failed = true;
        return false;
    }
    b->ptr = grown;
    b->cap = cap;
    return true;
}

void buf_put_growing(struct buf *b, const void *bytes, size_t len)
{
    if (len == 0 || !buf_reserve(b, len))
        return;
    memcpy(b->ptr + b->len, bytes, len);
    b->len += len;
    b->ptr[b->len] = '\0';
}

char *buf_extend_growing(struct buf *b, size_t len)
{
    if (!buf_reserve(b, len))
        return NULL;
    char *place = b->ptr + b->len;
    b->len += len;
    b->ptr[b->len] = '\0';
    return place;
}

void buf_put_i64(struct buf *b, int64_t value)
{
    char digits[DIGITS_MAX];
    const char *end = digits_put(digits, value);
    buf_put_bytes(b, digits, (size_t)(end - digits));
}

void buf_put_hex(struct buf *b, const void *bytes, size_t len)
{
    /* A doubled length that wraps round would look small. */
    if (!buf_reserve(b, len > SIZE_MAX / 2 ? SIZE_MAX : len * 2))
        return;
    const unsigned char *in = bytes;
    for (size_t i = 0; i < len; i++, b->len += 2)
        digits_put_hex(b->ptr + b->len, in[i]);
    b->ptr[b->len] = '\0';
}

void buf_put_base64(struct buf *b, const void *bytes, size_t len)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (!buf_reserve(b, len > SIZE_MAX / 2 ? SIZE_MAX : (len + 2) / 3 * 4))
        return;
    const unsigned char *in = bytes;
    for (size_t i = 0; i < len; i += 3) {
        size_t count = MIN(len - i, (size_t)3);
        uint32_t bits = (uint32_t)in[i] << 16 | (count > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
                        (count > 2 ? in[i + 2] : 0);
        for (size_t digit = 0; digit < 4; digit++)
            b->ptr[b->len++] = digit > count ? '=' : DIGITS[bits >> (18 - 6 * digit) & 63];
    }
    b->ptr[b->len] = '\0';
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    assert(len >= 0);
    if (buf_reserve(b, (size_t)len)) {
        (void)vsnprintf(b->ptr + b->len, (size_t)len + 1, fmt, again);
        b->len += (size_t)len;
    }
    va_end(again);
}
