/* Classes of bytes in HTTP messages, by table: RFC 9110 (5.5, 5.6.2, 5.6.4) and RFC 3986. */
#ifndef PAWL_HTTP_CHARS_H
#define PAWL_HTTP_CHARS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CHAR_TOKEN = 1,  /* tchar */
    CHAR_VALUE = 2,  /* of a field value: visible, obs-text, SP and HTAB */
    CHAR_TARGET = 4, /* of a request target, without '%': RFC 3986's characters of paths and
                        queries, and []^`{|}, which browsers do not encode */
    CHAR_HOST = 8,   /* unreserved or sub-delims: of a reg-name, without '%' */
    CHAR_HEX = 16,
    CHAR_DIGIT = 32,
    CHAR_BLANK = 64,  /* SP or HTAB */
    CHAR_QUOTED = 128 /* qdtext */
};

extern const uint8_t CHAR_CLASS[256];

static inline bool char_is(char c, unsigned classes)
{
    return (CHAR_CLASS[(unsigned char)c] & classes) != 0;
}

/* Are four characters of one class? */
static inline bool chars_are(const char *c, unsigned class)
{
    return (CHAR_CLASS[(unsigned char)c[0]] & CHAR_CLASS[(unsigned char)c[1]] &
            CHAR_CLASS[(unsigned char)c[2]] & CHAR_CLASS[(unsigned char)c[3]] & class) != 0;
}

/* Of a character that is CHAR_HEX. */
static inline unsigned char_hex_value(char c)
{
    return char_is(c, CHAR_DIGIT) ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10);
}

#endif
