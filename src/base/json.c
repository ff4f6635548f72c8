/* Strict reading of JSON, and writing it plain or canonical. */
#include "base/json.h"

#include "base/limits.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* --- reading --- */

/* jansson calls many a failed allocation an invalid token, which would blame the caller. Worse, it
 * does not check whether its buffer for a token could grow: the token then lacks bytes, or the
 * process aborts. So its allocations are watched. While it reads, those that fail get their memory
 * from the reserve instead, and what was read is thrown away. Set up before main(), because jansson
 * must know before its first use. */
static _Thread_local bool memory_ran_out;
static _Thread_local bool reading;
static _Alignas(max_align_t) char reserve[2 * JSON_WRITTEN_MAX]; /* no memory until it is used */
static atomic_flag reserve_taken = ATOMIC_FLAG_INIT; /* by the one thread that has blocks of it */
static _Thread_local size_t reserve_used;
static _Thread_local size_t reserve_blocks;

/* Another thread has it until it has read its text, without waiting for anybody. */
static void take_reserve(void)
{
    while (atomic_flag_test_and_set(&reserve_taken))
        (void)sched_yield();
    reserve_used = 0;
}

static void *from_reserve(size_t size)
{
    size_t rounded = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (reserve_blocks == 0)
        take_reserve();
    if (rounded > sizeof(reserve) - reserve_used) {
        if (reserve_blocks == 0)
            atomic_flag_clear(&reserve_taken);
        return NULL;
    }
    void *memory = reserve + reserve_used;
    reserve_used += rounded;
    reserve_blocks++;
    return memory;
}

static void *watched_malloc(size_t size)
{
    void *memory = malloc(size);
    if (memory != NULL)
        return memory;
    memory_ran_out = true;
    return reading ? from_reserve(size) : NULL;
}

static bool is_in_reserve(const char *memory)
{
    return memory >= reserve && memory < reserve + sizeof(reserve);
}

static void watched_free(void *memory)
{
    if (!is_in_reserve(memory)) {
        free(memory);
        return;
    }
    if (--reserve_blocks == 0)
        atomic_flag_clear(&reserve_taken);
}

__attribute__((constructor)) static void watch_allocations(void)
{
    json_set_alloc_funcs(watched_malloc, watched_free);
}

/* NULL and memory_ran_out, or NULL and *ret_error. */
static json_t *load(struct str text, size_t flags, json_error_t *ret_error)
{
    memory_ran_out = false;
    reading = true;
    json_t *value = json_loadb(text.ptr, text.len, flags | JSON_DECODE_ANY, ret_error);
    if (memory_ran_out) {
        json_decref(value);
        value = NULL;
    }
    reading = false;
    return value;
}

/* Depth is checked before parsing: the parser's own recursion limit is far larger than ours. */
static bool depth_within(struct str text, int depth_max, bool *ret_reals)
{
    int depth = 0;
    *ret_reals = false;
    bool in_text = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (in_text) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_text = false;
        } else if (c == '"') {
            in_text = true;
        } else if (c == '[' || c == '{') {
            if (++depth > depth_max)
                return false;
        } else if (c == ']' || c == '}') {
            depth--;
        } else if (c == '.' || c == 'e' || c == 'E') {
            *ret_reals = true; /* or the end of true and false */
        }
    }
    return true;
}

enum err json_parse(struct str text, struct problem *p, json_t **ret)
{
    if (text.len > JSON_TEXT_MAX)
        return problem_set(p, ERR_BODY_TOO_LARGE, "JSON text may have at most %d bytes",
                           JSON_TEXT_MAX);
    if (text.len >= 3 && memcmp(text.ptr, "\xEF\xBB\xBF", 3) == 0)
        return problem_set(p, ERR_JSON_INVALID, "the text begins with a byte-order mark");
    if (text.len == 0)
        return problem_set(p, ERR_JSON_INVALID, "the text is empty");
    /* The parser overlooks a NUL right after a number or a literal. */
    if (memchr(text.ptr, '\0', text.len) != NULL)
        return problem_set(p, ERR_JSON_INVALID, "the text contains a NUL byte");
    bool reals;
    if (!depth_within(text, JSON_DEPTH_MAX, &reals))
        return problem_set(p, ERR_JSON_INVALID, "nested deeper than %d levels", JSON_DEPTH_MAX);
    json_error_t error;
    error.line = error.column = 0; /* the rest is large, and set before it is looked at */
    error.text[0] = '\0';
    struct buf rewritten;
    buf_init(&rewritten, JSON_WRITTEN_MAX); /* `1e18` grows to 19 digits */
    if (reals && json_put_whole_numbers(&rewritten, text))
        text = buf_str(&rewritten);
    bool rewrote = buf_ok(&rewritten);
    json_t *value = rewrote ? load(text, JSON_REJECT_DUPLICATES, &error) : NULL;
    buf_release(&rewritten);
    if (value == NULL && (!rewrote || memory_ran_out))
        return problem_set(p, ERR_NO_MEMORY, "no memory to read the body");
    if (value == NULL)
        return problem_set(p, ERR_JSON_INVALID, "line %d, column %d: %s", error.line, error.column,
                           error.text);
    *ret = value;
    return ERR_OK;
}

enum err json_load(struct str text, json_t **ret)
{
    json_t *value = load(text, JSON_ALLOW_NUL, NULL);
    if (value == NULL)
        return memory_ran_out ? ERR_NO_MEMORY : ERR_DAMAGED;
    *ret = value;
    return ERR_OK;
}

/* --- whole values --- */

struct member {
    const char *name;
    size_t len;
    const json_t *value;
};

/* The next code point of valid UTF-8 text. */
static uint32_t next_code_point(const unsigned char **at)
{
    const unsigned char *p = *at;
    uint32_t c = p[0];
    int more = c < 0x80 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
    if (more > 0)
        c &= (1u << (6 - more)) - 1;
    for (int i = 1; i <= more; i++)
        c = c << 6 | (p[i] & 0x3Fu);
    *at = p + more + 1;
    return c;
}

/* RFC 8785 sorts by UTF-16 code units: as code points, but with U+E000…U+FFFF after the rest. */
static uint32_t utf16_rank(uint32_t c)
{
    return c >= 0xE000 && c <= 0xFFFF ? c + 0x200000 : c;
}

static int member_order(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;
    const unsigned char *p = (const unsigned char *)x->name;
    const unsigned char *q = (const unsigned char *)y->name;
    while (*p != '\0' && *q != '\0') {
        if (*p == *q && *p < 0x80) {
            p++;
            q++;
            continue;
        }
        uint32_t c = utf16_rank(next_code_point(&p));
        uint32_t d = utf16_rank(next_code_point(&q));
        if (c != d)
            return c < d ? -1 : 1;
    }
    return (*p != '\0') - (*q != '\0');
}

/* What of an object is not written. */
struct omitted {
    const char *member; /* of the outermost; NULL: none */
    const struct json_defaults *defaults;
};

static const struct omitted NOTHING_OMITTED = {NULL, NULL};

static void put_value(struct buf *out, const json_t *value, bool canonical,
                      const struct omitted *omitted);

static void put_members_sorted(struct buf *out, const json_t *object, const struct omitted *omitted)
{
    enum { FEW = 24 };
    struct member few[FEW];
    size_t count = json_object_size(object);
    struct member *members = few;
    if (count > FEW) {
        members = calloc(count, sizeof(*members));
        if (members == NULL) {
            out->failed = true;
            return;
        }
    }
    size_t n = 0;
    /* jansson's iteration takes a mutable object but changes nothing. */
    json_t *o = (json_t *)(uintptr_t)object;
    for (void *it = json_object_iter(o); it != NULL; it = json_object_iter_next(o, it)) {
        const char *name = json_object_iter_key(it);
        if ((omitted->member != NULL && strcmp(name, omitted->member) == 0) ||
            json_defaults_has(omitted->defaults, object, name))
            continue;
        members[n++] = (struct member){name, strlen(name), json_object_iter_value(it)};
    }
    qsort(members, n, sizeof(*members), member_order);
    const struct omitted below = {NULL, omitted->defaults};
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            buf_put_char(out, ',');
        json_put_text(out, (struct str){members[i].name, members[i].len});
        buf_put_char(out, ':');
        put_value(out, members[i].value, true, &below);
    }
    if (members != few)
        free(members);
}

static void put_members_as_written(struct buf *out, const json_t *object)
{
    json_t *o = (json_t *)(uintptr_t)object;
    bool first = true;
    for (void *it = json_object_iter(o); it != NULL; it = json_object_iter_next(o, it)) {
        if (!first)
            buf_put_char(out, ',');
        first = false;
        json_put_text(out, str_of(json_object_iter_key(it)));
        buf_put_char(out, ':');
        put_value(out, json_object_iter_value(it), false, &NOTHING_OMITTED);
    }
}

static void put_real(struct buf *out, double value, bool canonical)
{
    size_t before = out->len;
    json_put_double(out, value);
    if (canonical || !buf_ok(out))
        return;
    /* A reader that tells 1.0 from 1 gets back what was sent. */
    for (size_t i = before; i < out->len; i++) {
        if (out->ptr[i] == '.' || out->ptr[i] == 'e')
            return;
    }
    buf_put(out, STR(".0"));
}

/* Depth is bounded by json_parse, so recursion is too. */
static void put_value(struct buf *out, const json_t *value, bool canonical,
                      const struct omitted *omitted)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        buf_put_char(out, '{');
        if (canonical)
            put_members_sorted(out, value, omitted);
        else
            put_members_as_written(out, value);
        buf_put_char(out, '}');
        return;
    case JSON_ARRAY: {
        const struct omitted below = {NULL, omitted->defaults};
        buf_put_char(out, '[');
        for (size_t i = 0; i < json_array_size(value); i++) {
            if (i > 0)
                buf_put_char(out, ',');
            put_value(out, json_array_get(value, i), canonical, &below);
        }
        buf_put_char(out, ']');
        return;
    }
    case JSON_STRING:
        json_put_text(out, json_str(value));
        return;
    case JSON_INTEGER:
        buf_put_i64(out, json_integer_value(value));
        return;
    case JSON_REAL:
        put_real(out, json_real_value(value), canonical);
        return;
    case JSON_TRUE:
        buf_put(out, STR("true"));
        return;
    case JSON_FALSE:
        buf_put(out, STR("false"));
        return;
    case JSON_NULL:
        buf_put(out, STR("null"));
        return;
    }
    assert(false && "unknown JSON type");
}

void json_put_plain(struct buf *out, const json_t *value)
{
    put_value(out, value, false, &NOTHING_OMITTED);
}

void json_put_canonical(struct buf *out, const json_t *value)
{
    put_value(out, value, true, &NOTHING_OMITTED);
}

void json_put_canonical_without(struct buf *out, const json_t *value, const char *left_out,
                                const struct json_defaults *defaults)
{
    const struct omitted omitted = {left_out, defaults};
    put_value(out, value, true, &omitted);
}
