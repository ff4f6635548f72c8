/* SHA-256 over OpenSSL's libcrypto. */
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

bool sha256_eq(const struct sha256 *a, const struct sha256 *b)
{
    return CRYPTO_memcmp(a->bytes, b->bytes, SHA256_LEN) == 0;
}
