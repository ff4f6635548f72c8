/* How nodes believe each other. */
#include "cluster/node_auth.h"

#include "base/base64url.h"
#include "base/crypto.h"
#include "cluster/replay_window.h"

#define VERSION "pawl-forward-1"

/* One start of another node, and which of its requests were taken. */
struct sender {
    char session[NODE_SESSION_MAX + 1];
    int64_t seen_ms; /* when, by the shared clock */
    struct replay_window window;
};

struct node_auth {
    char secret[NODE_SECRET_MAX + 1];
    size_t secret_len;
    char session[NODE_SESSION_MAX + 1];
    uint64_t number; /* of the last token that was made */
    struct sender *senders[NODE_SENDERS_MAX];
    size_t sender_count;
};

struct node_auth *node_auth_new(struct str secret, struct str session)
{
    struct node_auth *a = calloc(1, sizeof(*a));
    if (a == NULL)
        return NULL;
    assert(secret.len > 0 && secret.len <= NODE_SECRET_MAX);
    assert(str_is_name(session) && session.len <= NODE_SESSION_MAX);
    memcpy(a->secret, secret.ptr, secret.len);
    a->secret_len = secret.len;
    memcpy(a->session, session.ptr, session.len);
    return a;
}

void node_auth_free(struct node_auth *a)
{
    if (a == NULL)
        return;
    for (size_t i = 0; i < a->sender_count; i++)
        free(a->senders[i]);
    free(a);
}

/* --- the MAC --- */

/* No part but the body, which is the last, can hold a line's end. */
static struct sha256 mac_of(const struct node_auth *a, const struct node_message *m,
                            struct str to_session, struct str said)
{
    const struct str first[] = {STR(VERSION "\n"), to_session, STR("\n"), said,
                                STR("\n"),         m->method};
    struct sha256 about =
        hmac_sha256((struct str){a->secret, a->secret_len}, first, ARRAY_LEN(first));
    const struct str all[] = {{(const char *)about.bytes, sizeof(about.bytes)},
                              STR("\n"),
                              m->path,
                              STR("?"),
                              m->query,
                              STR("\n"),
                              m->body};
    return hmac_sha256((struct str){a->secret, a->secret_len}, all, ARRAY_LEN(all));
}

/* --- what a token says --- */

/* In this order, with a space between each two; a text that is empty is a hyphen. */
enum token_field {
    FIELD_SESSION, /* the sender's */
    FIELD_NUMBER,
    FIELD_TIME,
    FIELD_SHARD,
    FIELD_ROLE,
    FIELD_FLAGS,
    FIELD_TENANT,
    FIELD_ACTOR,
    FIELD_PEER,
    FIELD_MAC,
    FIELDS
};

enum {
    HAS_CALLER = 1,
    ALL_TENANTS = 2,
    CREATES_TENANT = 4,
    IDENTIFIES = 8,
    TENANT_KNOWN = 16,
    FLAGS_MAX = 31
};

static void put_text(struct buf *out, struct str text)
{
    buf_put_char(out, ' ');
    if (text.len == 0)
        buf_put_char(out, '-');
    else
        base64url_put(out, text.ptr, text.len);
}

static void put_said(struct buf *out, struct node_auth *a, int64_t now_ms,
                     const struct node_claim *claim)
{
    const struct caller *who = &claim->caller;
    unsigned flags = (claim->has_caller ? (unsigned)HAS_CALLER : 0) |
                     (claim->identifies ? (unsigned)IDENTIFIES : 0) |
                     (who->all_tenants ? (unsigned)ALL_TENANTS : 0) |
                     (who->creates_tenant ? (unsigned)CREATES_TENANT : 0) |
                     (who->tenant_known ? (unsigned)TENANT_KNOWN : 0);
    buf_printf(out, "%s %llu %lld %u %u %u", a->session, (unsigned long long)++a->number,
               (long long)now_ms, claim->shard, (unsigned)who->role, flags);
    put_text(out, who->tenant);
    put_text(out, who->actor);
    put_text(out, who->peer);
}

struct str node_auth_sign(struct node_auth *a, const struct node_message *message,
                          struct str to_session, int64_t now_ms, const struct node_claim *claim,
                          struct arena *arena)
{
    struct buf token;
    buf_init(&token, NODE_TOKEN_MAX);
    put_said(&token, a, now_ms, claim);
    struct sha256 mac = mac_of(a, message, to_session, buf_str(&token));
    buf_put_char(&token, ' ');
    base64url_put(&token, mac.bytes, sizeof(mac.bytes));
    return arena_take(arena, &token);
}

/* --- reading it --- */

static bool split(struct str token, struct str fields[static FIELDS])
{
    for (size_t i = 0; i + 1 < FIELDS; i++) {
        if (!str_cut(token, ' ', &fields[i], &token) || fields[i].len == 0)
            return false;
    }
    fields[FIELD_MAC] = token;
    return token.len > 0 && memchr(token.ptr, ' ', token.len) == NULL;
}

static bool mac_fits(const struct node_auth *a, const struct http_request *req, struct str token,
                     struct str mac_text)
{
    struct sha256 mac;
    size_t len = 0;
    struct str said = {token.ptr, token.len - mac_text.len - 1};
    struct node_message message = {req->method, req->path, req->query, req->body};
    struct sha256 expected = mac_of(a, &message, str_of(a->session), said);
    return base64url_decode(mac_text, mac.bytes, sizeof(mac.bytes), &len) &&
           len == sizeof(mac.bytes) && sha256_eq(&mac, &expected);
}

static bool read_text(struct http_request *req, struct str text, size_t max, struct str *ret)
{
    char decoded[ACTOR_MAX + 1];
    size_t len = 0;
    *ret = STR("");
    if (str_is(text, "-"))
        return true;
    if (max > ACTOR_MAX || !base64url_decode(text, decoded, max, &len))
        return false;
    *ret = arena_str(&req->arena, (struct str){decoded, len});
    return ret->ptr != NULL;
}

static bool read_number(struct str text, int64_t max, int64_t *ret)
{
    return str_to_i64(text, ret) && *ret >= 0 && *ret <= max;
}

/* What is signed is well-formed, unless the other node is of another version. */
static bool read_claim(struct http_request *req, const struct str fields[static FIELDS],
                       struct node_claim *ret)
{
    int64_t shard;
    int64_t role;
    int64_t flags;
    struct caller *who = &ret->caller;
    if (!read_number(fields[FIELD_SHARD], UINT16_MAX, &shard) ||
        !read_number(fields[FIELD_ROLE], ROLE_COUNT - 1, &role) ||
        !read_number(fields[FIELD_FLAGS], FLAGS_MAX, &flags) ||
        !read_text(req, fields[FIELD_TENANT], TENANT_ID_MAX, &who->tenant) ||
        !read_text(req, fields[FIELD_ACTOR], ACTOR_MAX, &who->actor) ||
        !read_text(req, fields[FIELD_PEER], ACTOR_MAX, &who->peer))
        return false;
    ret->shard = (unsigned)shard;
    ret->has_caller = (flags & HAS_CALLER) != 0;
    ret->identifies = (flags & IDENTIFIES) != 0;
    who->role = (enum role)role;
    who->all_tenants = (flags & ALL_TENANTS) != 0;
    who->creates_tenant = (flags & CREATES_TENANT) != 0;
    who->tenant_known = (flags & TENANT_KNOWN) != 0;
    return true;
}

/* --- each once --- */

static struct sender *find_sender(const struct node_auth *a, struct str session)
{
    for (size_t i = 0; i < a->sender_count; i++) {
        if (str_is(session, a->senders[i]->session))
            return a->senders[i];
    }
    return NULL;
}

/* One that has sent nothing for so long that its tokens are outdated anyway. */
static struct sender *reuse_sender(const struct node_auth *a, int64_t now_ms)
{
    for (size_t i = 0; i < a->sender_count; i++) {
        if (a->senders[i]->seen_ms < now_ms - 2 * (int64_t)NODE_CLOCK_MS)
            return a->senders[i];
    }
    return NULL;
}

/* NULL: no room, or no memory. */
static struct sender *add_sender(struct node_auth *a, struct str session, int64_t now_ms)
{
    struct sender *s = reuse_sender(a, now_ms);
    if (s != NULL)
        *s = (struct sender){.seen_ms = 0};
    else if (a->sender_count < NODE_SENDERS_MAX && (s = calloc(1, sizeof(*s))) != NULL)
        a->senders[a->sender_count++] = s;
    if (s != NULL)
        memcpy(s->session, session.ptr, session.len);
    return s;
}

static bool take_number(struct node_auth *a, struct str session, int64_t number, int64_t now_ms)
{
    if (session.len > NODE_SESSION_MAX)
        return false;
    struct sender *s = find_sender(a, session);
    if (s == NULL)
        s = add_sender(a, session, now_ms);
    if (s == NULL || !replay_window_take(&s->window, (uint64_t)number))
        return false;
    s->seen_ms = MAX(s->seen_ms, now_ms);
    return true;
}

enum node_verdict node_auth_check(struct node_auth *a, struct http_request *req, struct str token,
                                  int64_t now_ms, struct node_claim *ret)
{
    struct str fields[FIELDS];
    int64_t number;
    int64_t time;
    struct node_claim claim = {.shard = 0};
    if (token.len > NODE_TOKEN_MAX || !split(token, fields) ||
        !mac_fits(a, req, token, fields[FIELD_MAC]) ||
        !read_number(fields[FIELD_NUMBER], INT64_MAX, &number) ||
        !read_number(fields[FIELD_TIME], INT64_MAX, &time) || !read_claim(req, fields, &claim))
        return NODE_FORGED;
    if (time < now_ms - NODE_CLOCK_MS || time > now_ms + NODE_CLOCK_MS)
        return NODE_OUTDATED;
    if (!take_number(a, fields[FIELD_SESSION], number, now_ms))
        return NODE_REPLAYED;
    *ret = claim;
    return NODE_BELIEVED;
}

const char *node_verdict_name(enum node_verdict verdict)
{
    static const char *const NAMES[] = {"believed", "forged", "outdated", "replayed"};
    assert((size_t)verdict < ARRAY_LEN(NAMES));
    return NAMES[verdict];
}
