/* Signatures of JSON Web Tokens. */
#include "domain/oidc/jws.h"

#include "base/base64url.h"
#include "base/limits.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

enum {
    RSA_BITS_MIN = 2048, /* RFC 7518, 3.3 */
    RSA_BYTES_MAX = 1024,
    EC_PART = 32, /* of P-256 */
};

struct token {
    struct str signed_text; /* header and payload as they came */
    unsigned char signature[RSA_BYTES_MAX];
    size_t signature_len;
    json_t *header;
    json_t *payload;
};

/* --- the token --- */

/* An object that is base64url and JSON; NULL when it is not. */
static json_t *read_object(struct str text)
{
    size_t len;
    json_t *object = NULL;
    struct problem p;
    char *bytes = malloc(text.len + 1);
    problem_init(&p);
    if (bytes != NULL && base64url_decode(text, bytes, text.len, &len) &&
        json_parse((struct str){bytes, len}, &p, &object) == ERR_OK && !json_is_object(object)) {
        json_decref(object);
        object = NULL;
    }
    problem_release(&p);
    free(bytes);
    return object;
}

static bool read_token(struct str text, struct token *t)
{
    struct str header;
    struct str rest;
    struct str payload;
    struct str signature;
    *t = (struct token){.header = NULL};
    if (text.len > OIDC_TOKEN_MAX || !str_cut(text, '.', &header, &rest) ||
        !str_cut(rest, '.', &payload, &signature))
        return false;
    t->signed_text = (struct str){text.ptr, header.len + 1 + payload.len};
    if (!base64url_decode(signature, t->signature, sizeof(t->signature), &t->signature_len))
        return false;
    t->header = read_object(header);
    t->payload = read_object(payload);
    return t->header != NULL && t->payload != NULL;
}

static void token_release(struct token *t)
{
    json_decref(t->header);
    json_decref(t->payload);
}

/* --- keys --- */

static struct str text_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? json_str(value) : STR_NONE;
}

static EVP_PKEY *make_key(const char *type, OSSL_PARAM_BLD *build)
{
    EVP_PKEY *key = NULL;
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    bool ok = params != NULL && context != NULL && EVP_PKEY_fromdata_init(context) == 1 &&
              EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) == 1;
    OSSL_PARAM_free(params);
    EVP_PKEY_CTX_free(context);
    return ok ? key : NULL;
}

static EVP_PKEY *rsa_key(const json_t *jwk)
{
    unsigned char n[RSA_BYTES_MAX];
    unsigned char e[8];
    size_t n_len;
    size_t e_len;
    if (!base64url_decode(text_of(jwk, "n"), n, sizeof(n), &n_len) ||
        !base64url_decode(text_of(jwk, "e"), e, sizeof(e), &e_len))
        return NULL;
    BIGNUM *modulus = BN_bin2bn(n, (int)n_len, NULL);
    BIGNUM *exponent = BN_bin2bn(e, (int)e_len, NULL);
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;
    if (modulus != NULL && exponent != NULL && build != NULL &&
        BN_num_bits(modulus) >= RSA_BITS_MIN &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, exponent) == 1)
        key = make_key("RSA", build);
    OSSL_PARAM_BLD_free(build);
    BN_free(modulus);
    BN_free(exponent);
    return key;
}

static EVP_PKEY *ec_key(const json_t *jwk)
{
    unsigned char point[1 + 2 * EC_PART] = {POINT_CONVERSION_UNCOMPRESSED};
    size_t x_len;
    size_t y_len;
    if (!str_is(text_of(jwk, "crv"), "P-256") ||
        !base64url_decode(text_of(jwk, "x"), point + 1, EC_PART, &x_len) || x_len != EC_PART ||
        !base64url_decode(text_of(jwk, "y"), point + 1 + EC_PART, EC_PART, &y_len) ||
        y_len != EC_PART)
        return NULL;
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;
    if (build != NULL &&
        OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)) == 1)
        key = make_key("EC", build);
    OSSL_PARAM_BLD_free(build);
    return key;
}

/* --- signatures --- */

static bool verify_digest(EVP_PKEY *key, struct str text, const unsigned char *signature,
                          size_t len)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok =
        context != NULL && EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestVerify(context, signature, len, (const unsigned char *)text.ptr, text.len) == 1;
    EVP_MD_CTX_free(context);
    return ok;
}

/* The token has r and s one after the other, OpenSSL wants them in DER. */
static bool verify_ec(EVP_PKEY *key, const struct token *t)
{
    unsigned char *der = NULL;
    bool ok = false;
    if (t->signature_len != 2 * EC_PART)
        return false;
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(t->signature, EC_PART, NULL);
    BIGNUM *s = BN_bin2bn(t->signature + EC_PART, EC_PART, NULL);
    if (pair != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(pair, r, s) == 1) {
        r = s = NULL; /* they are the pair's now */
        int len = i2d_ECDSA_SIG(pair, &der);
        ok = len > 0 && verify_digest(key, t->signed_text, der, (size_t)len);
    }
    OPENSSL_free(der);
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(pair);
    return ok;
}

struct algorithm {
    const char *name;
    const char *type;
    EVP_PKEY *(*key)(const json_t *jwk);
};

static const struct algorithm ALGORITHMS[] = {{"RS256", "RSA", rsa_key}, {"ES256", "EC", ec_key}};

static const struct algorithm *algorithm_of(const struct token *t)
{
    struct str name = text_of(t->header, "alg");
    for (size_t i = 0; i < ARRAY_LEN(ALGORITHMS); i++) {
        if (str_is(name, ALGORITHMS[i].name))
            return &ALGORITHMS[i];
    }
    return NULL;
}

/* May this key have signed it? A token without a kid may be of any key of its type. */
static bool fits(const struct algorithm *a, const struct token *t, const json_t *jwk)
{
    struct str kid = text_of(t->header, "kid");
    struct str alg = text_of(jwk, "alg");
    struct str use = text_of(jwk, "use");
    return str_is(text_of(jwk, "kty"), a->type) && (alg.ptr == NULL || str_is(alg, a->name)) &&
           (use.ptr == NULL || str_is(use, "sig")) &&
           (kid.ptr == NULL || str_eq(text_of(jwk, "kid"), kid));
}

static bool verify_by(const struct algorithm *a, const struct token *t, const json_t *jwk)
{
    EVP_PKEY *key = a->key(jwk);
    bool ok = false;
    if (key != NULL && a->key == ec_key)
        ok = verify_ec(key, t);
    else if (key != NULL)
        ok = verify_digest(key, t->signed_text, t->signature, t->signature_len);
    EVP_PKEY_free(key);
    return ok;
}

static enum jws_verdict verify(const struct token *t, const json_t *keys, const char **ret_why)
{
    const struct algorithm *a = algorithm_of(t);
    bool found = false;
    if (a == NULL || json_object_get(t->header, "crit") != NULL) {
        *ret_why = "its signature is not RS256 or ES256";
        return JWS_REFUSED;
    }
    const json_t *list = json_object_get(keys, "keys");
    for (size_t i = 0; i < MIN(json_array_size(list), (size_t)OIDC_KEYS_MAX); i++) {
        const json_t *jwk = json_array_get(list, i);
        if (!fits(a, t, jwk))
            continue;
        found = true;
        if (verify_by(a, t, jwk))
            return JWS_OK;
    }
    *ret_why = found ? "its signature is wrong" : "the provider has no key that signed it";
    return found ? JWS_REFUSED : JWS_UNKNOWN_KEY;
}

enum jws_verdict jws_verify(struct str token, const json_t *keys, json_t **ret_payload,
                            const char **ret_why)
{
    struct token t;
    enum jws_verdict verdict = JWS_REFUSED;
    if (read_token(token, &t))
        verdict = verify(&t, keys, ret_why);
    else
        *ret_why = "it is not a signed JSON Web Token";
    if (verdict == JWS_OK)
        *ret_payload = json_incref(t.payload);
    token_release(&t);
    return verdict;
}
