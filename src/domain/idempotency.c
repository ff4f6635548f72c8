/* Idempotency keys, fingerprints and verdicts. */
#include "domain/idempotency.h"

#include "base/limits.h"

static bool is_visible(char c)
{
    return c >= 0x21 && c <= 0x7E;
}

static enum err invalid(struct problem *p, const char *why)
{
    return problem_set(p, ERR_IDEM_KEY_INVALID, "The idempotency key %s", why);
}

enum err idem_key_check(struct str key, struct problem *p)
{
    if (key.len == 0)
        return invalid(p, "is empty");
    if (!str_is_utf8(key))
        return invalid(p, "is not UTF-8 text");
    size_t characters = 0;
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.ptr[i];
        if (c < 0x20 || c == 0x7F || (c == 0xC2 && (unsigned char)key.ptr[i + 1] < 0xA0))
            return invalid(p, "must not contain control characters");
        characters += (c & 0xC0) != 0x80; /* not the rest of one */
    }
    return characters <= IDEM_KEY_MAX ? ERR_OK : invalid(p, "is longer than 255 characters");
}

/* A key without quotes is what may stand in a header alone. */
static bool is_bare(struct str key)
{
    for (size_t i = 0; i < key.len; i++) {
        if (!is_visible(key.ptr[i]))
            return false;
    }
    return true;
}

/* --- RFC 8941: a string item and its parameters --- */

struct scan {
    const char *at;
    const char *end;
};

static bool accept(struct scan *s, char c)
{
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static void skip_spaces(struct scan *s)
{
    while (accept(s, ' ')) {
    }
}

/* After the opening quote; out may be NULL. False when it does not end or holds what a string may
 * not. */
static bool scan_string(struct scan *s, char *out, size_t *len)
{
    for (size_t n = 0; s->at < s->end; n++) {
        char c = *s->at++;
        if (c == '"') {
            *len = n;
            return true;
        }
        if (c == '\\') {
            if (s->at == s->end || (*s->at != '"' && *s->at != '\\'))
                return false;
            c = *s->at++;
        } else if (c < 0x20 || c > 0x7E) {
            return false;
        }
        if (out != NULL)
            out[n] = c;
    }
    return false;
}

static bool is_key_char(char c, bool first)
{
    if ((c >= 'a' && c <= 'z') || c == '*')
        return true;
    return !first && ((c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.');
}

/* A token, number, boolean or byte sequence: its characters, loosely; its meaning does not count
 * here. */
static bool is_bare_item_char(char c)
{
    return is_visible(c) && c != ';' && c != ',' && c != '"' && c != '(' && c != ')';
}

static bool scan_bare_item(struct scan *s)
{
    size_t len;
    if (accept(s, '"'))
        return scan_string(s, NULL, &len);
    const char *from = s->at;
    while (s->at < s->end && is_bare_item_char(*s->at))
        s->at++;
    return s->at > from;
}

static bool scan_parameters(struct scan *s)
{
    while (accept(s, ';')) {
        skip_spaces(s);
        const char *from = s->at;
        while (s->at < s->end && is_key_char(*s->at, s->at == from))
            s->at++;
        if (s->at == from || (accept(s, '=') && !scan_bare_item(s)))
            return false;
    }
    return s->at == s->end;
}

enum err idem_key_parse(struct str header, struct arena *arena, struct problem *p, struct str *ret)
{
    struct str text = str_trim(header);
    /* Escapes at most double the length; parameters are short. Anything longer is no key. */
    if (text.len > 4 * IDEM_KEY_MAX)
        return invalid(p, "is longer than 255 characters");
    char *copy = arena_room(arena, text.len + 1);
    if (copy == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for the request");
    struct str key = {copy, text.len};
    if (text.len > 0 && text.ptr[0] == '"') {
        struct scan s = {text.ptr + 1, text.ptr + text.len};
        if (!scan_string(&s, copy, &key.len))
            return invalid(p, "is not a well-formed structured-field string");
        if (!scan_parameters(&s))
            return invalid(p, "has text after its closing quote that is not a parameter");
    } else if (text.len > 0) {
        if (!is_bare(text))
            return invalid(p, "may contain only visible ASCII characters when unquoted");
        memcpy(copy, text.ptr, text.len);
    }
    if (key.len == 0)
        return invalid(p, "is empty");
    if (key.len > IDEM_KEY_MAX) /* all ASCII: bytes are characters */
        return invalid(p, "is longer than 255 characters");
    *ret = key;
    return ERR_OK;
}

/* --- what makes two requests the same --- */

int64_t idem_key_hash(struct str key)
{
    struct sha256 hash = sha256_of(key);
    int64_t out;
    memcpy(&out, hash.bytes, sizeof(out));
    return out != 0 ? out : 1;
}

uint64_t idem_raw_hash(struct siphash_key secret, struct str route, struct str body)
{
    uint64_t hash = siphash_fast(secret, siphash(secret, route), body);
    return hash != 0 ? hash : 1;
}

enum err idem_fingerprint(struct str route, const struct json *body, struct str key_member,
                          bool without_defaults, struct problem *p, struct sha256 *ret)
{
    struct buf canonical;
    buf_init(&canonical, JSON_WRITTEN_MAX);
    if (body != NULL)
        json_write_canonical_without(&canonical, body, key_member, without_defaults);
    else
        buf_put(&canonical, STR("{}"));
    enum err e = ERR_OK;
    if (buf_ok(&canonical)) {
        struct str parts[] = {route, buf_str(&canonical)};
        *ret = sha256_of_parts(parts, ARRAY_LEN(parts));
    } else {
        e = problem_set(p, ERR_NO_MEMORY, "No memory to compare the request");
    }
    buf_release(&canonical);
    return e;
}

enum idem_verdict idem_compare(const struct idem_claim *claim, uint64_t raw_hash,
                               const struct sha256 *fingerprint)
{
    assert(claim->key.len > 0);
    if (claim->raw_hash != 0 && claim->raw_hash == raw_hash)
        return IDEM_REPLAY;
    if (!claim->has_fingerprint)
        return IDEM_UNSURE;
    bool same = sha256_eq(&claim->fingerprint, fingerprint) ||
                (claim->has_spelled_out && sha256_eq(&claim->spelled_out, fingerprint));
    return same ? IDEM_REPLAY : IDEM_MISMATCH;
}

int64_t idem_expires_ms(int64_t created_ms, int64_t retention_ms)
{
    int64_t end;
    if (retention_ms < 0 || __builtin_add_overflow(created_ms, retention_ms, &end))
        return -1;
    return end;
}

/* --- routes --- */

#define START_BEGINS STR("POST /api/v1/workflows/")
#define START_ENDS STR("/runs")

struct str idem_start_route(struct arena *arena, struct str workflow_id)
{
    struct buf route;
    buf_init(&route, 4 * KIB);
    buf_put(&route, START_BEGINS);
    buf_put(&route, workflow_id);
    buf_put(&route, START_ENDS);
    return arena_take(arena, &route);
}

bool idem_is_start_route(struct str route, struct str workflow_id)
{
    const struct str parts[] = {START_BEGINS, workflow_id, START_ENDS};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (route.len < parts[i].len || memcmp(route.ptr, parts[i].ptr, parts[i].len) != 0)
            return false;
        route = (struct str){route.ptr + parts[i].len, route.len - parts[i].len};
    }
    return route.len == 0;
}
