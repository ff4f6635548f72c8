/* SHA-256, HMAC and comparison without a timing trace, over OpenSSL's libcrypto. */
#ifndef PAWL_BASE_CRYPTO_H
#define PAWL_BASE_CRYPTO_H

#include "base/str.h"

enum { SHA256_LEN = 32 };

struct sha256 {
    unsigned char bytes[SHA256_LEN];
};

/* The hash of the parts one after the other, each preceded by its length so that no two lists of
 * parts give the same bytes. */
struct sha256 sha256_of_parts(const struct str *parts, size_t count);
struct sha256 sha256_of(struct str text);

/* HMAC-SHA-256 of the parts one after the other, with nothing in between. */
struct sha256 hmac_sha256(struct str key, const struct str *parts, size_t count);

/* A key that signs often: both of its blocks are hashed once. As secret as the key itself. */
struct hmac_key {
    uint32_t inner[SHA256_LEN / 4];
    uint32_t outer[SHA256_LEN / 4];
};
struct hmac_key hmac_key_of(struct str key);
struct sha256 hmac_key_sign(const struct hmac_key *key, const struct str *parts, size_t count);

/* Equal, in a time that does not depend on where they differ. */
bool sha256_eq(const struct sha256 *a, const struct sha256 *b);

#endif
