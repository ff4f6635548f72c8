/* Numbers as text, two digits at a time. */
#ifndef PAWL_BASE_DIGITS_H
#define PAWL_BASE_DIGITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A sign and the digits of INT64_MIN. */
enum { DIGITS_MAX = 20 };

extern const char DIGIT_PAIRS[200]; /* 00 01 02 … 99 */

/* Two digits of a number from 0 to 99. */
static inline void digits_put_pair(char *at, unsigned pair)
{
    memcpy(at, &DIGIT_PAIRS[(size_t)2 * pair], 2);
}

/* Two hexadecimal digits for each byte, 00 to ff. */
extern const char HEX_PAIRS[512];

static inline void digits_put_hex(char *at, unsigned char byte)
{
    memcpy(at, &HEX_PAIRS[(size_t)2 * byte], 2);
}

/* Writes the number, DIGITS_MAX characters at most, and returns where it ends. */
char *digits_put(char *at, int64_t value);

#endif
