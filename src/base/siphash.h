/* SipHash-2-4: a fast keyed hash. Without the key nobody can make two texts collide on purpose, so
 * it is enough to find things by; where a stranger has to trust the digest, crypto.h has SHA-256.
 */
#ifndef PAWL_BASE_SIPHASH_H
#define PAWL_BASE_SIPHASH_H

#include "base/str.h"

enum { SIPHASH_KEY_LEN = 16 };

struct siphash_key {
    uint64_t k0;
    uint64_t k1;
};

struct siphash_key siphash_key_of(const unsigned char bytes[static SIPHASH_KEY_LEN]);
uint64_t siphash(struct siphash_key key, struct str text);
/* The hash of the number, as eight bytes with the lowest first, and the text after it. */
uint64_t siphash_numbered(struct siphash_key key, uint64_t number, struct str text);
/* The same with SipHash-1-3, which takes half the time of a long text: for hashes that are compared
 * and never shown. */
uint64_t siphash_fast(struct siphash_key key, uint64_t number, struct str text);

#endif
