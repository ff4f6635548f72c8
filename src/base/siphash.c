/* SipHash-2-4, after the reference by Aumasson and Bernstein. */
#include "base/siphash.h"

#include <endian.h>
#include <string.h>

struct state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotated(uint64_t v, int bits)
{
    return v << bits | v >> (64 - bits);
}

static uint64_t word_at(const void *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return le64toh(word);
}

static void mix(struct state *s)
{
    s->v0 += s->v1;
    s->v1 = rotated(s->v1, 13) ^ s->v0;
    s->v0 = rotated(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotated(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotated(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotated(s->v1, 17) ^ s->v2;
    s->v2 = rotated(s->v2, 32);
}

static void take(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    mix(s);
    mix(s);
    s->v0 ^= word;
}

static struct state begun(struct siphash_key key)
{
    return (struct state){key.k0 ^ 0x736f6d6570736575u, key.k1 ^ 0x646f72616e646f6du,
                          key.k0 ^ 0x6c7967656e657261u, key.k1 ^ 0x7465646279746573u};
}

/* `before` is the number of bytes that were taken already. */
static uint64_t finish(struct state *s, struct str text, size_t before)
{
    size_t whole = text.len & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8)
        take(s, word_at(text.ptr + i));
    uint64_t last = (uint64_t)(before + text.len) << 56;
    for (size_t i = whole; i < text.len; i++)
        last |= (uint64_t)(unsigned char)text.ptr[i] << (8 * (i - whole));
    take(s, last);
    s->v2 ^= 0xff;
    for (int i = 0; i < 4; i++)
        mix(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

struct siphash_key siphash_key_of(const unsigned char bytes[static SIPHASH_KEY_LEN])
{
    return (struct siphash_key){word_at(bytes), word_at(bytes + 8)};
}

uint64_t siphash(struct siphash_key key, struct str text)
{
    struct state s = begun(key);
    return finish(&s, text, 0);
}

uint64_t siphash_numbered(struct siphash_key key, uint64_t number, struct str text)
{
    struct state s = begun(key);
    take(&s, number);
    return finish(&s, text, sizeof(number));
}
