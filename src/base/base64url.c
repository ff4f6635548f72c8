/* Base64 in the alphabet for URLs. */
#include "base/base64url.h"

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_put(struct buf *b, const void *bytes, size_t len)
{
    const unsigned char *in = bytes;
    for (size_t i = 0; i < len; i += 3) {
        size_t count = MIN(len - i, (size_t)3);
        uint32_t bits = (uint32_t)in[i] << 16 | (count > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
                        (count > 2 ? in[i + 2] : 0);
        for (size_t digit = 0; digit <= count; digit++)
            buf_put_char(b, DIGITS[bits >> (18 - 6 * digit) & 63]);
    }
}

/* -1: it is no digit. */
static int value_of(char c)
{
    const char *at = c != '\0' ? strchr(DIGITS, c) : NULL;
    return at != NULL ? (int)(at - DIGITS) : -1;
}

bool base64url_decode(struct str text, void *out, size_t room, size_t *ret_len)
{
    unsigned char *to = out;
    size_t len = text.len / 4 * 3 + (text.len % 4 == 3 ? 2 : text.len % 4 == 2 ? 1 : 0);
    if (text.len % 4 == 1 || len > room)
        return false;
    uint32_t bits = 0;
    unsigned held = 0; /* bits that are not written yet */
    for (size_t i = 0; i < text.len; i++) {
        int value = value_of(text.ptr[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            *to++ = (unsigned char)(bits >> held);
            bits &= (1u << held) - 1;
        }
    }
    if (bits != 0)
        return false;
    *ret_len = len;
    return true;
}
