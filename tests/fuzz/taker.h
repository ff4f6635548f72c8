/* Reads decisions off an input: bytes, choices, texts. An input that has ended gives zeros. */
#ifndef PAWL_FUZZ_TAKER_H
#define PAWL_FUZZ_TAKER_H

#include "base/str.h"

#include <stdint.h>

struct taker {
    const uint8_t *at;
    size_t left;
};

static inline unsigned take_byte(struct taker *t)
{
    if (t->left == 0)
        return 0;
    t->left--;
    return *t->at++;
}

static inline size_t take_below(struct taker *t, size_t bound)
{
    return bound > 0 ? take_byte(t) % bound : 0;
}

static inline bool take_one_in(struct taker *t, size_t n)
{
    return take_below(t, n) == n - 1;
}

static inline int64_t take_number(struct taker *t)
{
    uint64_t bits = 0;
    for (size_t bytes = 1 + take_below(t, 8); bytes > 0; bytes--)
        bits = bits << 8 | take_byte(t);
    return (int64_t)bits;
}

/* Up to `max` bytes of the input itself, by a length that stands before them. */
static inline struct str take_text(struct taker *t, size_t max)
{
    size_t want = take_byte(t);
    size_t len = want < max ? want : max;
    len = len < t->left ? len : t->left;
    struct str text = {(const char *)t->at, len};
    t->at += len;
    t->left -= len;
    return text;
}

#endif
