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

static struct sha256 sha256_joined(const struct str *parts, size_t count)
{
    SHA256_CTX context;
    must(SHA256_Init(&context));
    for (size_t i = 0; i < count; i++)
        must(SHA256_Update(&context, parts[i].ptr, parts[i].len));
    return finish(&context);
}

struct sha256 sha256_of(struct str text)
{
    return sha256_joined(&text, 1);
}

/* RFC 2104. OpenSSL's own HMAC fetches its algorithms again for each message. */
struct sha256 hmac_sha256(struct str key, const struct str *parts, size_t count)
{
    enum { BLOCK = 64 };
    unsigned char inner[BLOCK] = {0};
    unsigned char outer[BLOCK];
    struct str all[HMAC_PARTS_MAX + 1] = {{(const char *)inner, BLOCK}};
    assert(count <= HMAC_PARTS_MAX);
    if (key.len > BLOCK) {
        struct sha256 short_key = sha256_of(key);
        memcpy(inner, short_key.bytes, SHA256_LEN);
    } else {
        memcpy(inner, key.ptr, key.len);
    }
    for (size_t i = 0; i < BLOCK; i++) {
        outer[i] = (unsigned char)(inner[i] ^ 0x5C);
        inner[i] ^= 0x36;
    }
    memcpy(all + 1, parts, count * sizeof(*parts));
    struct sha256 digest = sha256_joined(all, count + 1);
    struct str last[] = {{(const char *)outer, BLOCK}, {(const char *)digest.bytes, SHA256_LEN}};
    digest = sha256_joined(last, ARRAY_LEN(last));
    OPENSSL_cleanse(inner, sizeof(inner));
    OPENSSL_cleanse(outer, sizeof(outer));
    return digest;
}

bool sha256_eq(const struct sha256 *a, const struct sha256 *b)
{
    return CRYPTO_memcmp(a->bytes, b->bytes, SHA256_LEN) == 0;
}
