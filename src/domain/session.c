/* The session of a person in a browser, as text. */
#include "domain/session.h"

#include "base/base64url.h"
#include "base/crypto.h"

enum {
    HEAD_LEN = 1 + 16 + 8, /* kind, id, expires_at */
    BODY_MAX = HEAD_LEN + 2 + TENANT_ID_MAX + ACTOR_MAX,
};

struct body {
    unsigned char bytes[BODY_MAX];
    size_t len;
};

/* --- writing --- */

static void add(struct body *b, const void *bytes, size_t len)
{
    assert(b->len + len <= sizeof(b->bytes));
    memcpy(b->bytes + b->len, bytes, len);
    b->len += len;
}

static void add_byte(struct body *b, size_t value)
{
    unsigned char byte = (unsigned char)value;
    assert(value <= 255);
    add(b, &byte, 1);
}

static void write_body(const struct session *s, struct body *b)
{
    b->len = 0;
    add_byte(b, s->kind);
    add(b, s->id.bytes, sizeof(s->id.bytes));
    for (int shift = 56; shift >= 0; shift -= 8)
        add_byte(b, (uint64_t)s->expires_at >> shift & 255);
    if (s->kind == SESSION_OF_KEY) {
        add(b, s->key_id.bytes, sizeof(s->key_id.bytes));
        return;
    }
    add_byte(b, s->role);
    add_byte(b, strlen(s->tenant));
    add(b, s->tenant, strlen(s->tenant));
    add(b, s->actor, strlen(s->actor));
}

/* "session" before the body: no other text under this secret can pass for one. */
static struct sha256 sign(const struct body *b, struct str secret)
{
    const struct str parts[] = {STR("session"), {(const char *)b->bytes, b->len}};
    return hmac_sha256(secret, parts, ARRAY_LEN(parts));
}

void session_put(struct buf *out, const struct session *session, struct str secret)
{
    struct body b;
    write_body(session, &b);
    struct sha256 mac = sign(&b, secret);
    base64url_put(out, b.bytes, b.len);
    buf_put_char(out, '.');
    base64url_put(out, mac.bytes, sizeof(mac.bytes));
}

/* --- reading --- */

static bool read_signed(struct str text, struct str secret, struct body *ret)
{
    struct str body;
    struct str mac_text;
    struct sha256 mac;
    size_t mac_len;
    if (!str_cut(text, '.', &body, &mac_text) ||
        !base64url_decode(body, ret->bytes, sizeof(ret->bytes), &ret->len) ||
        !base64url_decode(mac_text, mac.bytes, sizeof(mac.bytes), &mac_len) ||
        mac_len != sizeof(mac.bytes))
        return false;
    struct sha256 right = sign(ret, secret);
    return sha256_eq(&mac, &right);
}

static bool read_person(const unsigned char *at, size_t len, struct session *ret)
{
    if (len < 2 || at[0] >= ROLE_COUNT || at[1] > TENANT_ID_MAX || at[1] > len - 2 ||
        len - 2 - at[1] > ACTOR_MAX)
        return false;
    size_t tenant_len = at[1];
    ret->role = at[0];
    memcpy(ret->tenant, at + 2, tenant_len);
    memcpy(ret->actor, at + 2 + tenant_len, len - 2 - tenant_len);
    return true;
}

/* The signature is right, so this server made it; an earlier version may have. */
static bool read_body(const struct body *b, struct session *ret)
{
    if (b->len < HEAD_LEN)
        return false;
    *ret = (struct session){.kind = b->bytes[0]};
    memcpy(ret->id.bytes, b->bytes + 1, sizeof(ret->id.bytes));
    uint64_t expires = 0;
    for (size_t i = 0; i < 8; i++)
        expires = expires << 8 | b->bytes[17 + i];
    ret->expires_at = (int64_t)expires;
    const unsigned char *rest = b->bytes + HEAD_LEN;
    size_t len = b->len - HEAD_LEN;
    if (ret->kind == SESSION_OF_PERSON)
        return read_person(rest, len, ret);
    if (ret->kind != SESSION_OF_KEY || len != sizeof(ret->key_id.bytes))
        return false;
    memcpy(ret->key_id.bytes, rest, len);
    return true;
}

bool session_read(struct str text, struct str secret, struct session *ret)
{
    struct body b;
    struct session session;
    if (!read_signed(text, secret, &b) || !read_body(&b, &session))
        return false;
    *ret = session;
    return true;
}
