/* What an API key looks like. Pure.
 *
 * A key is pawl_PREFIX_SECRET. The prefix, which is no secret, finds the key's row; the SHA-256 of
 * the whole text proves that the caller has the key. */
#ifndef PAWL_DOMAIN_API_KEY_H
#define PAWL_DOMAIN_API_KEY_H

#include "base/crypto.h"
#include "base/limits.h"

enum {
    API_KEY_PREFIX_LEN = 15, /* "pawl_" and ten characters */
    API_KEY_SECRET_LEN = 40,
    API_KEY_RANDOM_LEN = API_KEY_PREFIX_LEN - 5 + API_KEY_SECRET_LEN,
};

struct api_key_random {
    unsigned char bytes[API_KEY_RANDOM_LEN];
};

/* Writes a new key to `text`, which holds API_KEY_TEXT_MAX bytes; *ret_prefix points into it. */
void api_key_make(const struct api_key_random *random, char *text, struct str *ret_prefix,
                  struct sha256 *ret_hash);
/* The prefix of what may be a key; false when it cannot be one. */
bool api_key_prefix(struct str key, struct str *ret);

#endif
