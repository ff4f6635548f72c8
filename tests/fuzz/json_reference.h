/* What pawl 0.1.0 did with JSON, over jansson: an independent reader and writer to compare with.
 * Stored texts and fingerprints were made by it, so what it takes, refuses and writes is what
 * base/json must take, refuse and write, to the bit. */
#ifndef PAWL_FUZZ_JSON_REFERENCE_H
#define PAWL_FUZZ_JSON_REFERENCE_H

#include "base/json_out.h"
#include "base/limits.h"

#include <jansson.h>
#include <math.h>

/* --- numbers --- */

static inline int ref_double_digits(double value, char digits[static 20], int *ret_exponent)
{
    assert(isfinite(value) && value > 0);
    char text[40];
    for (int count = 1; count <= 17; count++) {
        (void)snprintf(text, sizeof(text), "%.*e", count - 1, value);
        bool same = strtod(text, NULL) == value;
        int exponent;
        if (!same && frexp(value, &exponent) == 0.5) {
            /* Below a power of two doubles lie twice as dense, so that the nearest decimal may miss
             * while its upper neighbour still reads back: try that one before using more digits. */
            char *last = &text[count == 1 ? 0 : count];
            if (*last < '9') {
                (*last)++;
                same = strtod(text, NULL) == value;
            }
        }
        if (!same)
            continue;
        char *e = strchr(text, 'e');
        assert(e != NULL);
        *ret_exponent = (int)strtol(e + 1, NULL, 10);
        int n = 0;
        for (char *c = text; c < e; c++) {
            if (*c != '.')
                digits[n++] = *c;
        }
        while (n > 1 && digits[n - 1] == '0')
            n--;
        return n;
    }
    assert(false && "17 digits always read back");
    return 0;
}

static inline void put_zeros(struct buf *out, int count)
{
    for (int i = 0; i < count; i++)
        buf_put_char(out, '0');
}

static inline void ref_put_double(struct buf *out, double value)
{
    assert(isfinite(value));
    if (value == 0) {
        buf_put_char(out, '0');
        return;
    }
    if (value < 0) {
        buf_put_char(out, '-');
        value = -value;
    }
    char digits[20] = "0";
    int exponent = 0;
    int count = ref_double_digits(value, digits, &exponent);
    int point = exponent + 1; /* digits before the decimal point */
    if (count <= point && point <= 21) {
        buf_put_bytes(out, digits, (size_t)count);
        put_zeros(out, point - count);
    } else if (0 < point && point < count) {
        buf_put_bytes(out, digits, (size_t)point);
        buf_put_char(out, '.');
        buf_put_bytes(out, digits + point, (size_t)(count - point));
    } else if (-6 < point && point <= 0) {
        buf_put(out, STR("0."));
        put_zeros(out, -point);
        buf_put_bytes(out, digits, (size_t)count);
    } else {
        buf_put_char(out, digits[0]);
        if (count > 1) {
            buf_put_char(out, '.');
            buf_put_bytes(out, digits + 1, (size_t)(count - 1));
        }
        buf_put_char(out, 'e');
        buf_put_char(out, exponent < 0 ? '-' : '+');
        buf_put_i64(out, exponent < 0 ? -exponent : exponent);
    }
}

#define DOUBLE_EXACT_MAX (INT64_C(1) << 53)

enum { DIGITS_KEPT = 20 }; /* one more than 64 bits have */

/* A number as it is written: digits × 10^exponent, without zeros around the digits. */
struct decimal {
    bool negative;
    char digits[DIGITS_KEPT]; /* the first of them */
    int count;                /* of all of them */
    int zeros;                /* read behind the last of them, not in the exponent yet */
    int exponent;
};

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline size_t digits_at(struct str text, size_t at)
{
    size_t n = 0;
    while (at + n < text.len && is_digit(text.ptr[at + n]))
        n++;
    return n;
}

static inline void add_digit(struct decimal *d, char c)
{
    if (d->count < DIGITS_KEPT)
        d->digits[d->count] = c;
    d->count++;
}

static inline void add_digits(struct decimal *d, struct str text, size_t from, size_t count,
                              bool fraction)
{
    for (size_t i = 0; i < count; i++) {
        d->exponent -= fraction;
        if (text.ptr[from + i] == '0') {
            d->zeros += d->count > 0;
            continue;
        }
        for (; d->zeros > 0; d->zeros--)
            add_digit(d, '0');
        add_digit(d, text.ptr[from + i]);
    }
}

/* The number that begins at `at`. Returns the length of its text, 0 when it is none. */
static inline size_t scan_number(struct str text, size_t at, struct decimal *ret)
{
    size_t i = at;
    *ret = (struct decimal){.negative = text.ptr[at] == '-'};
    i += ret->negative;
    size_t whole = digits_at(text, i);
    if (whole == 0 || (whole > 1 && text.ptr[i] == '0'))
        return 0;
    add_digits(ret, text, i, whole, false);
    i += whole;
    if (i < text.len && text.ptr[i] == '.') {
        size_t fraction = digits_at(text, i + 1);
        add_digits(ret, text, i + 1, fraction, true);
        i += 1 + fraction;
        if (fraction == 0)
            return 0;
    }
    if (i < text.len && (text.ptr[i] == 'e' || text.ptr[i] == 'E')) {
        i++;
        bool minus = i < text.len && text.ptr[i] == '-';
        i += i < text.len && (text.ptr[i] == '-' || text.ptr[i] == '+');
        size_t count = digits_at(text, i);
        if (count == 0)
            return 0;
        int power = 0;
        for (size_t k = 0; k < count; k++)
            power = MIN(10 * power + (text.ptr[i + k] - '0'), 10000);
        ret->exponent += minus ? -power : power;
        i += count;
    }
    ret->exponent += ret->zeros;
    ret->zeros = 0;
    return i - at;
}

/* True for a whole number of 64 bits that a double may not hold exactly. */
static inline bool needs_integer(const struct decimal *d, int64_t *ret)
{
    if (d->count == 0 || d->exponent < 0 || d->count + d->exponent > 19)
        return false;
    uint64_t value = 0;
    for (int i = 0; i < d->count + d->exponent; i++)
        value = 10 * value + (uint64_t)(i < d->count ? d->digits[i] - '0' : 0);
    if (value <= (uint64_t)DOUBLE_EXACT_MAX || value > (uint64_t)INT64_MAX)
        return false;
    *ret = d->negative ? -(int64_t)value : (int64_t)value;
    return true;
}

/* The double nearest to one that is no whole number. Beyond 2^53 it is one all the same: that which
 * its shortest digits say, so that it reads as it is written. */
static inline bool is_whole_when_rounded(const struct decimal *d, int64_t *ret)
{
    int before_point = d->count + d->exponent;
    if (d->count == 0 || before_point < 16 || before_point > 19)
        return false;
    char text[DIGITS_KEPT + 16];
    int kept = MIN(d->count, (int)DIGITS_KEPT);
    /* The digits that were not kept are not all zeros: a 1 rounds as they would. */
    (void)snprintf(text, sizeof(text), "%.*s%de%d", kept, d->digits, d->count > kept,
                   before_point - kept - 1);
    struct decimal nearest = {.negative = d->negative};
    int exponent;
    char digits[20];
    int count = ref_double_digits(strtod(text, NULL), digits, &exponent);
    for (int i = 0; i < count; i++)
        add_digit(&nearest, digits[i]);
    nearest.exponent = exponent + 1 - count;
    return needs_integer(&nearest, ret);
}

/* Everything that could be a part of a number. If more of it stands there than a number has, the
 * text is malformed, and writing a part of it in another way could make it well-formed. */
static inline size_t length_of_run(struct str text, size_t at)
{
    size_t n = 0;
    while (at + n < text.len &&
           (is_digit(text.ptr[at + n]) || text.ptr[at + n] == '.' || text.ptr[at + n] == '+' ||
            text.ptr[at + n] == '-' || (text.ptr[at + n] | 0x20) == 'e'))
        n++;
    return n;
}

static inline bool ref_put_whole_numbers(struct buf *out, struct str text)
{
    size_t done = 0;
    bool in_text = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (in_text) {
            i += c == '\\';
            in_text = c != '"';
        } else if (c == '"') {
            in_text = true;
        } else if (c == '-' || is_digit(c)) {
            struct decimal d;
            int64_t value;
            size_t run = length_of_run(text, i);
            size_t len = scan_number(text, i, &d);
            bool plain = len == (c == '-') + digits_at(text, i + (c == '-'));
            if (len == run && !plain &&
                (needs_integer(&d, &value) || is_whole_when_rounded(&d, &value))) {
                buf_put_bytes(out, text.ptr + done, i - done);
                buf_put_i64(out, value);
                done = i + len;
            }
            i += run - 1;
        }
    }
    if (done > 0)
        buf_put_bytes(out, text.ptr + done, text.len - done);
    return done > 0;
}

/* --- reading --- */

/* Depth is checked before parsing: the parser's own recursion limit is far larger than ours. */
static inline bool ref_depth_within(struct str text, int depth_max, bool *ret_reals)
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

/* A new reference; NULL: refused. */
static inline json_t *ref_parse(struct str text)
{
    bool reals;
    if (text.len > JSON_TEXT_MAX || text.len == 0 || memchr(text.ptr, '\0', text.len) != NULL ||
        !ref_depth_within(text, JSON_DEPTH_MAX, &reals))
        return NULL;
    if (text.len >= 3 && memcmp(text.ptr, "\xEF\xBB\xBF", 3) == 0)
        return NULL;
    struct buf rewritten;
    buf_init(&rewritten, JSON_WRITTEN_MAX); /* `1e18` grows to 19 digits */
    if (reals && ref_put_whole_numbers(&rewritten, text))
        text = buf_str(&rewritten);
    json_error_t error;
    json_t *value =
        json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    buf_release(&rewritten);
    return value;
}

/* --- writing --- */

struct member {
    const char *name;
    size_t len;
    const json_t *value;
};

/* The next code point of valid UTF-8 text. */
static inline uint32_t next_code_point(const unsigned char **at)
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
static inline uint32_t utf16_rank(uint32_t c)
{
    return c >= 0xE000 && c <= 0xFFFF ? c + 0x200000 : c;
}

static inline int member_order(const void *a, const void *b)
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
};

static const struct omitted NOTHING_OMITTED = {NULL};

static inline void ref_put_value(struct buf *out, const json_t *value, bool canonical,
                                 const struct omitted *omitted);

static inline void put_members_sorted(struct buf *out, const json_t *object,
                                      const struct omitted *omitted)
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
        if (omitted->member != NULL && strcmp(name, omitted->member) == 0)
            continue;
        members[n++] = (struct member){name, strlen(name), json_object_iter_value(it)};
    }
    qsort(members, n, sizeof(*members), member_order);
    const struct omitted below = {NULL};
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            buf_put_char(out, ',');
        json_put_text(out, (struct str){members[i].name, members[i].len});
        buf_put_char(out, ':');
        ref_put_value(out, members[i].value, true, &below);
    }
    if (members != few)
        free(members);
}

static inline void put_members_as_written(struct buf *out, const json_t *object)
{
    json_t *o = (json_t *)(uintptr_t)object;
    bool first = true;
    for (void *it = json_object_iter(o); it != NULL; it = json_object_iter_next(o, it)) {
        if (!first)
            buf_put_char(out, ',');
        first = false;
        json_put_text(out, str_of(json_object_iter_key(it)));
        buf_put_char(out, ':');
        ref_put_value(out, json_object_iter_value(it), false, &NOTHING_OMITTED);
    }
}

static inline void put_real(struct buf *out, double value, bool canonical)
{
    size_t before = out->len;
    ref_put_double(out, value);
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
static inline void ref_put_value(struct buf *out, const json_t *value, bool canonical,
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
        const struct omitted below = {NULL};
        buf_put_char(out, '[');
        for (size_t i = 0; i < json_array_size(value); i++) {
            if (i > 0)
                buf_put_char(out, ',');
            ref_put_value(out, json_array_get(value, i), canonical, &below);
        }
        buf_put_char(out, ']');
        return;
    }
    case JSON_STRING:
        json_put_text(out, (struct str){json_string_value(value), json_string_length(value)});
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

/* `canonical` or plain; of the canonical form, without a member of the outermost object. */
static inline void ref_write(struct buf *out, const json_t *value, bool canonical,
                             const char *left_out)
{
    const struct omitted omitted = {left_out};
    ref_put_value(out, value, canonical, &omitted);
}

#endif
