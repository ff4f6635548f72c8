/* Chance from a seed: a ChaCha20 key stream (RFC 8439, with a nonce of zero). */
#include "base/chance.h"

#include "base/macros.h"

#include <string.h>

/* A row of the state's 4 x 4 words: a round works on four columns, or four diagonals, at once. */
typedef uint32_t row __attribute__((vector_size(16)));

static inline row rotate(row x, int by)
{
    return x << by | x >> (32 - by);
}

static inline void quarters(row s[static 4])
{
    s[0] += s[1];
    s[3] = rotate(s[3] ^ s[0], 16);
    s[2] += s[3];
    s[1] = rotate(s[1] ^ s[2], 12);
    s[0] += s[1];
    s[3] = rotate(s[3] ^ s[0], 8);
    s[2] += s[3];
    s[1] = rotate(s[1] ^ s[2], 7);
}

/* Moves the words of a row to the left, and round. */
static inline row turn(row x, int by)
{
    return (row){x[by], x[(by + 1) % 4], x[(by + 2) % 4], x[(by + 3) % 4]};
}

static inline void double_round(row s[static 4])
{
    quarters(s);
    /* The diagonals become columns, and columns again. */
    s[1] = turn(s[1], 1);
    s[2] = turn(s[2], 2);
    s[3] = turn(s[3], 3);
    quarters(s);
    s[1] = turn(s[1], 3);
    s[2] = turn(s[2], 2);
    s[3] = turn(s[3], 1);
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

static void write_word(unsigned char *b, uint32_t word)
{
    b[0] = (unsigned char)word;
    b[1] = (unsigned char)(word >> 8);
    b[2] = (unsigned char)(word >> 16);
    b[3] = (unsigned char)(word >> 24);
}

static void next_block(struct chance *c)
{
    row s[4];
    memcpy(s, c->state, sizeof(s));
    for (int round = 0; round < 10; round++)
        double_round(s);
    for (size_t i = 0; i < 16; i++)
        write_word(c->block + 4 * i, s[i / 4][i % 4] + c->state[i]);
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
