/* SipHash-2-4 and SipHash-1-3, after the reference by Aumasson and Bernstein. */
#include "base/siphash.h"

#include <endian.h>
#include <string.h>

struct state {
    uint64_t v0, v1, v2, v3;
};

ALWAYS_INLINE uint64_t rotated(uint64_t v, int bits)
{
    return v << bits | v >> (64 - bits);
}

static uint64_t word_at(const void *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return le64toh(word);
}

/* Inline, so that the state stays in registers. */
ALWAYS_INLINE void mix(struct state *s)
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

ALWAYS_INLINE void take(struct state *s, uint64_t word, int rounds)
{
    s->v3 ^= word;
    for (int i = 0; i < rounds; i++)
        mix(s);
    s->v0 ^= word;
}

static struct state begun(struct siphash_key key)
{
    return (struct state){key.k0 ^ 0x736f6d6570736575u, key.k1 ^ 0x646f72616e646f6du,
                          key.k0 ^ 0x6c7967656e657261u, key.k1 ^ 0x7465646279746573u};
}

/* The last bytes, fewer than eight, of a text. */
static uint64_t rest_of(struct str text)
{
    size_t rest = text.len % 8;
    uint64_t word = 0;
    if (rest == 0)
        return 0;
    if (text.len >= 8) /* with some of those before it, which are shifted out */
        return word_at(text.ptr + text.len - 8) >> (64 - 8 * rest);
    for (size_t i = 0; i < rest; i++)
        word |= (uint64_t)(unsigned char)text.ptr[i] << (8 * i);
    return word;
}

/* `before` is the number of bytes that were taken already. The end takes two more rounds than a
 * word. Inline, so that their number is a constant. */
ALWAYS_INLINE uint64_t finish(struct state s, struct str text, size_t before, int rounds)
{
    const char *end = text.ptr + text.len / 8 * 8;
    for (const char *at = text.ptr; at < end; at += 8)
        take(&s, word_at(at), rounds);
    take(&s, (uint64_t)(before + text.len) << 56 | rest_of(text), rounds);
    s.v2 ^= 0xff;
    for (int i = 0; i < rounds + 2; i++)
        mix(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

struct siphash_key siphash_key_of(const unsigned char bytes[static SIPHASH_KEY_LEN])
{
    return (struct siphash_key){word_at(bytes), word_at(bytes + 8)};
}

uint64_t siphash(struct siphash_key key, struct str text)
{
    struct state s = begun(key);
    return finish(s, text, 0, 2);
}

uint64_t siphash_numbered(struct siphash_key key, uint64_t number, struct str text)
{
    struct state s = begun(key);
    take(&s, number, 2);
    return finish(s, text, sizeof(number), 2);
}

uint64_t siphash_fast(struct siphash_key key, uint64_t number, struct str text)
{
    struct state s = begun(key);
    take(&s, number, 1);
    return finish(s, text, sizeof(number), 1);
}
