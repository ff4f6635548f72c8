/* Chance from a seed: a ChaCha20 key stream. The same seed gives the same bytes, and nobody who has
 * seen some of them can tell the others without the seed. */
#ifndef PAWL_BASE_CHANCE_H
#define PAWL_BASE_CHANCE_H

#include <stddef.h>
#include <stdint.h>

struct chance_seed {
    unsigned char bytes[32];
};

struct chance {
    uint32_t state[16];
    unsigned char block[64];
    size_t used; /* bytes of the block that are gone */
};

void chance_init(struct chance *c, const struct chance_seed *seed);
void chance_take(struct chance *c, void *out, size_t len);

#endif
