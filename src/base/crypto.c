/* SHA-256 and HMAC over OpenSSL's libcrypto. */
/* The functions of SHA-256 alone: they need no memory. EVP_DigestInit() allocates for each digest,
 * and a server that is short of memory could then not even look up a key. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/crypto.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

static void must(int openssl_rc)
{
    assert(openssl_rc == 1);
}

static struct sha256 finish(SHA256_CTX *context)
{
    struct sha256 out;
    must(SHA256_Final(out.bytes, context));
    return out;
}

struct sha256 sha256_of_parts(const struct str *parts, size_t count)
{
    SHA256_CTX context;
    must(SHA256_Init(&context));
    for (size_t i = 0; i < count; i++) {
        uint64_t len = parts[i].len;
        must(SHA256_Update(&context, &len, sizeof(len)));
        must(SHA256_Update(&context, parts[i].ptr, parts[i].len));
    }
    return finish(&context);
}

static void add_parts(SHA256_CTX *context, const struct str *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        must(SHA256_Update(context, parts[i].ptr, parts[i].len));
}

struct sha256 sha256_of(struct str text)
{
    SHA256_CTX context;
    must(SHA256_Init(&context));
    add_parts(&context, &text, 1);
    return finish(&context);
}

/* --- HMAC, RFC 2104. OpenSSL's own fetches its algorithms again for each message. --- */

enum { BLOCK = 64 };

/* What a hash that begins with the block has come to behind it. */
static void hash_block(const unsigned char block[static BLOCK], uint32_t ret[static SHA256_LEN / 4])
{
    SHA256_CTX context;
    must(SHA256_Init(&context));
    must(SHA256_Update(&context, block, BLOCK));
    static_assert(sizeof(context.h) == SHA256_LEN, "the state of a hash is as long as the hash");
    memcpy(ret, context.h, sizeof(context.h));
    OPENSSL_cleanse(&context, sizeof(context));
}

/* Goes on behind such a block. */
static void hash_behind_block(const uint32_t state[static SHA256_LEN / 4], SHA256_CTX *ret)
{
    must(SHA256_Init(ret));
    memcpy(ret->h, state, sizeof(ret->h));
    ret->Nl = BLOCK * 8; /* bits so far */
}

struct hmac_key hmac_key_of(struct str key)
{
    unsigned char block[BLOCK] = {0};
    struct hmac_key out = {0};
    if (key.len > BLOCK) {
        struct sha256 short_key = sha256_of(key);
        memcpy(block, short_key.bytes, SHA256_LEN);
    } else if (key.len > 0) {
        memcpy(block, key.ptr, key.len);
    }
    for (size_t i = 0; i < BLOCK; i++)
        block[i] ^= 0x36;
    hash_block(block, out.inner);
    for (size_t i = 0; i < BLOCK; i++)
        block[i] ^= 0x36 ^ 0x5C;
    hash_block(block, out.outer);
    OPENSSL_cleanse(block, sizeof(block));
    return out;
}

struct sha256 hmac_key_sign(const struct hmac_key *key, const struct str *parts, size_t count)
{
    SHA256_CTX context;
    hash_behind_block(key->inner, &context);
    add_parts(&context, parts, count);
    struct sha256 inner = finish(&context);
    hash_behind_block(key->outer, &context);
    must(SHA256_Update(&context, inner.bytes, SHA256_LEN));
    return finish(&context);
}

struct sha256 hmac_sha256(struct str key, const struct str *parts, size_t count)
{
    struct hmac_key prepared = hmac_key_of(key);
    struct sha256 out = hmac_key_sign(&prepared, parts, count);
    OPENSSL_cleanse(&prepared, sizeof(prepared));
    return out;
}

bool sha256_eq(const struct sha256 *a, const struct sha256 *b)
{
    return CRYPTO_memcmp(a->bytes, b->bytes, SHA256_LEN) == 0;
}
