/* W3C trace context (https://www.w3.org/TR/trace-context/). */
#include "base/trace/trace.h"

#include <assert.h>

enum {
    SPAN_ID_AT = 36,
    FLAGS_AT = 53,
    KEY_LEN_MAX = 256,
    TENANT_LEN_MAX = 241, /* in keys with an @ */
    SYSTEM_LEN_MAX = 14,
    VALUE_LEN_MAX = 256,
};

/* --- traceparent --- */

static bool is_lower_hex(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
    }
    return true;
}

static bool is_zero(struct str s)
{
    size_t i = 0;
    while (i < s.len && s.ptr[i] == '0')
        i++;
    return i == s.len;
}

/* VERSION-TRACE-SPAN-FLAGS, lower case hexadecimal, TRACE and SPAN not all zero. */
bool traceparent_ok(struct str t)
{
    if (t.len < TRACEPARENT_LEN || t.ptr[2] != '-' || t.ptr[35] != '-' || t.ptr[52] != '-')
        return false;
    struct str version = {t.ptr, 2};
    struct str trace = {t.ptr + TRACE_ID_AT, TRACE_ID_LEN};
    struct str span = {t.ptr + SPAN_ID_AT, SPAN_ID_LEN};
    struct str flags = {t.ptr + FLAGS_AT, 2};
    bool length_ok =
        t.len == TRACEPARENT_LEN || (!is_zero(version) && t.ptr[TRACEPARENT_LEN] == '-');
    return length_ok && is_lower_hex(version) && is_lower_hex(trace) && is_lower_hex(span) &&
           is_lower_hex(flags) && !str_is(version, "ff") && !is_zero(trace) && !is_zero(span);
}

/* --- tracestate --- */

static bool is_lower_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A part of a key: 1 to `max` characters that begin with a letter, or with a digit if it may. */
static bool is_key_part(struct str s, size_t max, bool may_begin_with_digit)
{
    if (s.len == 0 || s.len > max)
        return false;
    if (!is_lower_letter(s.ptr[0]) && !(may_begin_with_digit && is_digit(s.ptr[0])))
        return false;
    for (size_t i = 1; i < s.len; i++) {
        char c = s.ptr[i];
        bool mark = c == '_' || c == '-' || c == '*' || c == '/';
        if (!is_lower_letter(c) && !is_digit(c) && !mark)
            return false;
    }
    return true;
}

/* SYSTEM, or TENANT@SYSTEM. */
static bool is_key(struct str key)
{
    struct str tenant, system;
    if (!str_cut(key, '@', &tenant, &system))
        return is_key_part(key, KEY_LEN_MAX, false);
    return is_key_part(tenant, TENANT_LEN_MAX, true) && is_key_part(system, SYSTEM_LEN_MAX, false);
}

/* Printable ASCII without comma and equals sign. It cannot end with a space: members are trimmed.
 */
static bool is_value(struct str value)
{
    if (value.len == 0 || value.len > VALUE_LEN_MAX)
        return false;
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        if (c < ' ' || c > '~' || c == ',' || c == '=')
            return false;
    }
    return true;
}

bool tracestate_ok(struct str text)
{
    size_t count = 0;
    struct str rest = text;
    for (bool more = text.len > 0; more;) {
        struct str member, key, value;
        more = str_cut(rest, ',', &member, &rest);
        member = str_trim(member);
        if (member.len == 0)
            continue;
        if (++count > TRACESTATE_MEMBERS_MAX || !str_cut(member, '=', &key, &value) ||
            !is_key(key) || !is_value(value))
            return false;
    }
    return count > 0;
}

/* --- spans --- */

static unsigned digit_of(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static uint64_t hex_number(const char *digits, size_t count)
{
    uint64_t n = 0;
    for (size_t i = 0; i < count; i++)
        n = n << 4 | digit_of(digits[i]);
    return n;
}

struct uuid trace_id_of(const char *digits)
{
    struct uuid id;
    for (size_t i = 0; i < sizeof(id.bytes); i++)
        id.bytes[i] = (unsigned char)hex_number(digits + 2 * i, 2);
    return id;
}

struct trace_span trace_span_below(struct str traceparent, struct uuid own_trace, uint64_t id)
{
    assert(id != 0);
    struct trace_span span = {.id = id, .flags = TRACE_SAMPLED};
    bool continued = traceparent_ok(traceparent);
    struct uuid trace = continued ? trace_id_of(traceparent.ptr + TRACE_ID_AT) : own_trace;
    memcpy(span.trace, trace.bytes, sizeof(span.trace));
    if (!continued)
        return span;
    span.parent = hex_number(traceparent.ptr + SPAN_ID_AT, SPAN_ID_LEN);
    span.flags = hex_number(traceparent.ptr + FLAGS_AT, 2) & (TRACE_SAMPLED | TRACE_RANDOM);
    return span;
}

struct trace_span trace_span_child(const struct trace_span *parent, uint64_t id)
{
    assert(id != 0);
    struct trace_span span = *parent;
    span.parent = parent->id;
    span.id = id;
    return span;
}

/* The finalizer of splitmix64: every bit of the input changes half of the output's. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t trace_span_id(struct uuid of, int64_t number)
{
    uint64_t halves[2];
    memcpy(halves, of.bytes, sizeof(halves));
    uint64_t id = mix(mix(halves[0]) ^ halves[1]);
    id = mix(id + (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15));
    return id != 0 ? id : 1;
}

/* --- text --- */

static void put_hex(char *out, uint64_t value, size_t digits)
{
    for (size_t i = digits; i-- > 0; value >>= 4)
        out[i] = "0123456789abcdef"[value & 15];
}

void trace_write_id(const struct trace_span *span, char out[static TRACE_ID_LEN + 1])
{
    for (size_t i = 0; i < sizeof(span->trace); i++)
        put_hex(out + 2 * i, span->trace[i], 2);
    out[TRACE_ID_LEN] = '\0';
}

void trace_write_span_id(uint64_t id, char out[static SPAN_ID_LEN + 1])
{
    put_hex(out, id, SPAN_ID_LEN);
    out[SPAN_ID_LEN] = '\0';
}

void trace_write(const struct trace_span *span, char out[static TRACEPARENT_LEN + 1])
{
    memcpy(out, "00-", TRACE_ID_AT);
    trace_write_id(span, out + TRACE_ID_AT);
    out[SPAN_ID_AT - 1] = '-';
    trace_write_span_id(span->id, out + SPAN_ID_AT);
    out[FLAGS_AT - 1] = '-';
    put_hex(out + FLAGS_AT, span->flags, 2);
    out[TRACEPARENT_LEN] = '\0';
}
