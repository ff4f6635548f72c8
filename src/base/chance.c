/* Chance from a seed: a ChaCha20 key stream (RFC 8439, with a nonce of zero). */
#include "base/chance.h"

#include "base/macros.h"

#include <string.h>

static uint32_t rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static void quarter(uint32_t s[static 16], int a, int b, int c, int d)
{
    s[a] += s[b];
    s[d] = rotate(s[d] ^ s[a], 16);
    s[c] += s[d];
    s[b] = rotate(s[b] ^ s[c], 12);
    s[a] += s[b];
    s[d] = rotate(s[d] ^ s[a], 8);
    s[c] += s[d];
    s[b] = rotate(s[b] ^ s[c], 7);
}

static uint32_t read_word(const unsigned char *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

void chance_init(struct chance *c, const struct chance_seed *seed)
{
    static const unsigned char CONSTANT[] = "expand 32-byte k";
    *c = (struct chance){.used = sizeof(c->block)};
    for (size_t i = 0; i < 4; i++)
        c->state[i] = read_word(CONSTANT + 4 * i);
    for (size_t i = 0; i < 8; i++)
        c->state[4 + i] = read_word(seed->bytes + 4 * i);
}

static void next_block(struct chance *c)
{
    uint32_t s[16];
    memcpy(s, c->state, sizeof(s));
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 4; i++)
            quarter(s, i, 4 + i, 8 + i, 12 + i);
        for (int i = 0; i < 4; i++)
            quarter(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
    }
    for (size_t i = 0; i < 16; i++) {
        uint32_t word = s[i] + c->state[i];
        for (size_t n = 0; n < 4; n++)
            c->block[4 * i + n] = (unsigned char)(word >> 8 * n);
    }
    c->used = 0;
    if (++c->state[12] == 0)
        c->state[13]++;
}

void chance_take(struct chance *c, void *out, size_t len)
{
    unsigned char *at = out;
    while (len > 0) {
        if (c->used == sizeof(c->block))
            next_block(c);
        size_t n = MIN(len, sizeof(c->block) - c->used);
        memcpy(at, c->block + c->used, n);
        memset(c->block + c->used, 0, n);
        c->used += n;
        at += n;
        len -= n;
    }
}
