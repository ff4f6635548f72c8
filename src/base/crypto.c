/* SHA-256 and HMAC over OpenSSL's libcrypto. */
#include "base/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>

/* Fetching the algorithm and making a context costs more than hashing a request: both are kept,
 * the context once per thread. */
static EVP_MD *algorithm;
static pthread_once_t algorithm_once = PTHREAD_ONCE_INIT;
static pthread_key_t context_key;

static void context_free(void *context)
{
    EVP_MD_CTX_free(context);
}

static void algorithm_fetch(void)
{
    algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    assert(algorithm != NULL);
    int rc = pthread_key_create(&context_key, context_free);
    assert(rc == 0);
}

static EVP_MD_CTX *context_of_thread(void)
{
    int rc = pthread_once(&algorithm_once, algorithm_fetch);
    assert(rc == 0);
    EVP_MD_CTX *context = pthread_getspecific(context_key);
    if (context == NULL) {
        context = EVP_MD_CTX_new();
        assert(context != NULL);
        rc = pthread_setspecific(context_key, context);
        assert(rc == 0);
    }
    return context;
}

static void must(int openssl_rc)
{
    assert(openssl_rc == 1);
}

struct sha256 sha256_of_parts(const struct str *parts, size_t count)
{
    struct sha256 out;
    EVP_MD_CTX *context = context_of_thread();
    must(EVP_DigestInit_ex2(context, algorithm, NULL));
    for (size_t i = 0; i < count; i++) {
        uint64_t len = parts[i].len;
        must(EVP_DigestUpdate(context, &len, sizeof(len)));
        must(EVP_DigestUpdate(context, parts[i].ptr, parts[i].len));
    }
    must(EVP_DigestFinal_ex(context, out.bytes, NULL));
    return out;
}

struct sha256 sha256_of(struct str text)
{
    struct sha256 out;
    EVP_MD_CTX *context = context_of_thread();
    must(EVP_DigestInit_ex2(context, algorithm, NULL));
    must(EVP_DigestUpdate(context, text.ptr, text.len));
    must(EVP_DigestFinal_ex(context, out.bytes, NULL));
    return out;
}

static struct sha256 sha256_joined(const struct str *parts, size_t count)
{
    struct sha256 out;
    EVP_MD_CTX *context = context_of_thread();
    must(EVP_DigestInit_ex2(context, algorithm, NULL));
    for (size_t i = 0; i < count; i++)
        must(EVP_DigestUpdate(context, parts[i].ptr, parts[i].len));
    must(EVP_DigestFinal_ex(context, out.bytes, NULL));
    return out;
}

/* RFC 2104, over the kept context: OpenSSL's own HMAC fetches its algorithms again for each
 * message. */
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
