/* Verifying and signing webhook messages (Standard Webhooks). */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "error.h"
#include "util.h"

#define SECRET_BYTES_MAX 1024
#define TOLERANCE_S 300

static enum pawl_err invalid(struct pawl_error *error, const char *reason, const char *message)
{
    error_set(error, PAWL_ERR_WEBHOOK_INVALID, "%s", message);
    if (error)
        copy_text(error->code, sizeof error->code, reason);
    return PAWL_ERR_WEBHOOK_INVALID;
}

/* The bytes of a secret in base64; their number, or -1. */
static int decode_secret(const char *secret, unsigned char key[SECRET_BYTES_MAX])
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (strncmp(secret, "whsec_", 6) == 0)
        secret += 6;
    size_t size = strlen(secret), plain = strspn(secret, letters), padding = size - plain;
    if (size % 4 || padding > 2 || strspn(secret + plain, "=") != padding ||
        size / 4 * 3 > SECRET_BYTES_MAX)
        return -1;
    int decoded = EVP_DecodeBlock(key, (const unsigned char *)secret, (int)size);
    return decoded < 0 ? -1 : decoded - (int)padding;
}

static enum pawl_err sign(const char *secret, const char *id, const char *stamp, const void *body,
                          size_t size, char signature[PAWL_SIGNATURE_SIZE],
                          struct pawl_error *error)
{
    unsigned char key[SECRET_BYTES_MAX], digest[EVP_MAX_MD_SIZE];
    int key_size = decode_secret(secret, key);
    if (key_size < 0)
        return invalid(error, "secret_invalid", "The secret is not base64");
    if (key_size == 0)
        return invalid(error, "secret_invalid", "The secret is empty");
    struct buffer text = {0};
    buffer_text(&text, id);
    buffer_text(&text, ".");
    buffer_text(&text, stamp);
    buffer_text(&text, ".");
    buffer_add(&text, body, size);
    unsigned digest_size = 0;
    bool made = !text.failed && HMAC(EVP_sha256(), key, key_size, (const unsigned char *)text.data,
                                     text.size, digest, &digest_size);
    buffer_free(&text);
    OPENSSL_cleanse(key, sizeof key);
    if (!made)
        return error_no_memory(error);
    copy_text(signature, PAWL_SIGNATURE_SIZE, "v1,");
    EVP_EncodeBlock((unsigned char *)signature + 3, digest, (int)digest_size);
    return PAWL_OK;
}

static const char *header(const struct pawl_header *headers, const char *name)
{
    for (; headers->name; headers++)
        if (strcasecmp(headers->name, name) == 0)
            return headers->value ? headers->value : "";
    return "";
}

/* Whether one of the signatures, which blanks separate, is the wanted one. */
static bool is_among(const char *wanted, const char *given)
{
    size_t length = strlen(wanted);
    bool found = false;
    while (*given) {
        size_t size = strcspn(given, " ");
        found |= size == length && CRYPTO_memcmp(wanted, given, length) == 0;
        given += size + (given[size] == ' ');
    }
    return found;
}

enum pawl_err pawl_webhook_verify(const char *secret, const struct pawl_header *headers,
                                  const void *body, size_t size, int64_t now_s, int64_t tolerance_s,
                                  json_t **ret_event, struct pawl_error *error)
{
    const char *id = header(headers, "webhook-id"), *stamp = header(headers, "webhook-timestamp");
    const char *given = header(headers, "webhook-signature");
    if (!*id || !*stamp || !*given)
        return invalid(error, "header_missing",
                       "The header webhook-id, webhook-timestamp or webhook-signature is missing");
    if (strspn(stamp, "0123456789") != strlen(stamp) || strlen(stamp) > 15)
        return invalid(error, "timestamp_invalid", "The timestamp is not a number");
    int64_t age_s = (now_s ? now_s : (int64_t)time(NULL)) - strtoll(stamp, NULL, 10);
    if (llabs(age_s) > (tolerance_s ? tolerance_s : TOLERANCE_S))
        return invalid(error, "timestamp_out_of_range",
                       "The message is too old, or from the future");
    char wanted[PAWL_SIGNATURE_SIZE];
    enum pawl_err result = sign(secret, id, stamp, body, size, wanted, error);
    if (result != PAWL_OK)
        return result;
    if (!is_among(wanted, given))
        return invalid(error, "signature_mismatch", "The message is not signed with this secret");
    json_t *event = json_loadb(body, size, JSON_ALLOW_NUL, NULL);
    if (!event)
        return invalid(error, "body_invalid", "The body is not a JSON object");
    *ret_event = event;
    return PAWL_OK;
}

enum pawl_err pawl_webhook_sign(const char *secret, const char *message_id, int64_t timestamp_s,
                                const void *body, size_t size, char signature[PAWL_SIGNATURE_SIZE],
                                struct pawl_error *error)
{
    char stamp[24];
    snprintf(stamp, sizeof stamp, "%lld", (long long)timestamp_s);
    return sign(secret, message_id, stamp, body, size, signature, error);
}
