/* One sign-in at an OpenID provider, as signed text. */
#include "domain/oidc/flow.h"

#include "base/base64url.h"
#include "base/crypto.h"

enum { HEAD_LEN = FLOW_ID_LEN + 8, BODY_MAX = HEAD_LEN + OIDC_RETURN_MAX };

bool oidc_return_ok(struct str text)
{
    if (text.len > OIDC_RETURN_MAX || str_starts_with(text, STR("/")))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool up = c == '.' && i + 1 < text.len && text.ptr[i + 1] == '.';
        if (c <= ' ' || c > '~' || c == '\\' || c == '"' || c == '<' || c == '>' || up)
            return false;
    }
    return true;
}

static struct sha256 mac_of(const char *purpose, struct str bytes, struct str secret)
{
    const struct str parts[] = {STR("oidc "), str_of(purpose), STR("\0"), bytes};
    return hmac_sha256(secret, parts, ARRAY_LEN(parts));
}

void oidc_flow_put(struct buf *out, const struct oidc_flow *flow, struct str secret)
{
    unsigned char body[BODY_MAX];
    size_t len = strlen(flow->return_to);
    memcpy(body, flow->id, FLOW_ID_LEN);
    for (size_t i = 0; i < 8; i++)
        body[FLOW_ID_LEN + i] = (unsigned char)((uint64_t)flow->expires_at >> (56 - 8 * i));
    memcpy(body + HEAD_LEN, flow->return_to, len);
    struct sha256 mac = mac_of("flow", (struct str){(const char *)body, HEAD_LEN + len}, secret);
    base64url_put(out, body, HEAD_LEN + len);
    buf_put_char(out, '.');
    base64url_put(out, mac.bytes, sizeof(mac.bytes));
}

bool oidc_flow_read(struct str text, struct str secret, struct oidc_flow *ret)
{
    unsigned char body[BODY_MAX];
    struct str body_text;
    struct str mac_text;
    struct sha256 mac;
    size_t len;
    size_t mac_len;
    if (!str_cut(text, '.', &body_text, &mac_text) ||
        !base64url_decode(body_text, body, sizeof(body), &len) || len < HEAD_LEN ||
        !base64url_decode(mac_text, mac.bytes, sizeof(mac.bytes), &mac_len) ||
        mac_len != sizeof(mac.bytes))
        return false;
    struct sha256 right = mac_of("flow", (struct str){(const char *)body, len}, secret);
    if (!sha256_eq(&mac, &right))
        return false;
    *ret = (struct oidc_flow){.expires_at = 0};
    memcpy(ret->id, body, FLOW_ID_LEN);
    uint64_t expires = 0;
    for (size_t i = 0; i < 8; i++)
        expires = expires << 8 | body[FLOW_ID_LEN + i];
    ret->expires_at = (int64_t)expires;
    memcpy(ret->return_to, body + HEAD_LEN, len - HEAD_LEN);
    return true;
}

static void put_word(char out[static FLOW_WORD_LEN + 1], const struct sha256 *bytes)
{
    struct buf text;
    buf_init(&text, FLOW_WORD_LEN);
    base64url_put(&text, bytes->bytes, sizeof(bytes->bytes));
    memset(out, '\0', FLOW_WORD_LEN + 1);
    if (buf_ok(&text)) /* an empty word fails every comparison */
        memcpy(out, text.ptr, text.len);
    buf_release(&text);
}

void oidc_flow_words(const struct oidc_flow *flow, struct str secret, struct oidc_words *ret)
{
    struct str id = {(const char *)flow->id, FLOW_ID_LEN};
    struct sha256 state = mac_of("state", id, secret);
    struct sha256 nonce = mac_of("nonce", id, secret);
    struct sha256 verifier = mac_of("verifier", id, secret);
    put_word(ret->state, &state);
    put_word(ret->nonce, &nonce);
    put_word(ret->verifier, &verifier);
    struct sha256 challenge = sha256_of(str_of(ret->verifier));
    put_word(ret->challenge, &challenge);
}
