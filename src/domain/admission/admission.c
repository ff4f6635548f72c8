/* Limits, and what happens when one is reached. */
#include "domain/admission/admission.h"

#include "base/crypto.h"
#include "base/json.h"
#include "base/limits.h"

static const char *const AT_LIMIT_NAMES[] = {
#define X(symbol, name) name,
    AT_LIMITS(X)
#undef X
};

static_assert(ARRAY_LEN(AT_LIMIT_NAMES) == AT_LIMIT_COUNT, "one name per policy");

const char *at_limit_name(enum at_limit policy)
{
    assert(policy < AT_LIMIT_COUNT);
    return AT_LIMIT_NAMES[policy];
}

enum at_limit at_limit_of(struct str name)
{
    enum at_limit policy = 0;
    while (policy < AT_LIMIT_COUNT && !str_is(name, AT_LIMIT_NAMES[policy]))
        policy++;
    return policy;
}

/* --- the decision --- */

bool limit_is_reached(const struct limit_state *limit)
{
    assert(limit->current >= 0 && limit->ahead >= 0);
    return limit->max >= 0 && limit->current + limit->ahead >= limit->max;
}

int64_t limit_excess(const struct limit_state *limit)
{
    return limit->max < 0 ? 0 : MAX(limit->current - limit->max + 1, (int64_t)0);
}

static enum admission_verdict verdict_of(const struct limit_state *limit)
{
    switch (limit->at_limit) {
    case AT_LIMIT_REJECT:
    case AT_LIMIT_COUNT:
        return ADMISSION_REJECT;
    case AT_LIMIT_QUEUE:
        return ADMISSION_QUEUE;
    case AT_LIMIT_COALESCE:
        return ADMISSION_COALESCE;
    case AT_LIMIT_CANCEL_OLDEST:
        return limit->max > 0 ? ADMISSION_CANCEL_OLDEST : ADMISSION_REJECT;
    }
    assert(false); /* every policy has its case */
    return ADMISSION_REJECT;
}

struct admission admission_decide(const struct limit_state *limits, size_t count)
{
    static const int CARE[] = {
        [ADMISSION_ADMIT] = 0,    [ADMISSION_CANCEL_OLDEST] = 1, [ADMISSION_QUEUE] = 2,
        [ADMISSION_COALESCE] = 3, [ADMISSION_REJECT] = 4,
    };
    struct admission decided = {ADMISSION_ADMIT, 0};
    for (size_t i = 0; i < count; i++) {
        if (!limit_is_reached(&limits[i]))
            continue;
        enum admission_verdict verdict = verdict_of(&limits[i]);
        if (CARE[verdict] > CARE[decided.verdict])
            decided = (struct admission){verdict, i};
    }
    return decided;
}

/* --- keys --- */

bool limit_path_ok(struct str path)
{
    struct str part;
    bool more = str_cut(path, '.', &part, &path);
    if (!str_is(part, "input"))
        return false;
    while (more) {
        more = str_cut(path, '.', &part, &path);
        if (part.len == 0)
            return false;
        for (size_t i = 0; i < part.len; i++) {
            char c = part.ptr[i];
            bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-';
            if (!ok)
                return false;
        }
    }
    return true;
}

static const struct json *follow(struct str path, const struct json *at)
{
    struct str part;
    bool more = str_cut(path, '.', &part, &path); /* `input` itself */
    while (more && at != NULL) {
        more = str_cut(path, '.', &part, &path);
        int64_t index;
        if (json_is(at, JSON_KIND_LIST))
            at = str_to_i64(part, &index) && index >= 0 ? json_element(at, (size_t)index) : NULL;
        else
            at = json_member(at, part);
    }
    return at;
}

void limit_key(struct str path, const struct json *input, struct buf *out)
{
    const struct json *value = follow(path, input);
    if (value == NULL || json_is(value, JSON_KIND_NULL))
        return;
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    if (json_is(value, JSON_KIND_TEXT))
        buf_put(&text, json_text_of(value));
    else
        json_write_canonical(&text, value);
    if (!buf_ok(&text) || text.len <= LIMIT_KEY_MAX) {
        buf_put(out, buf_str(&text));
        out->failed |= text.failed;
    } else {
        struct sha256 hash = sha256_of(buf_str(&text));
        buf_put(out, STR("sha256:"));
        buf_put_hex(out, hash.bytes, SHA256_LEN);
    }
    buf_release(&text);
}
