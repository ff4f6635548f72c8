/* Borrowed text: comparison, cutting, and the checks that names and numbers need. */
#include "base/str.h"

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    if (a.len > 0 && memcmp(a.ptr, b.ptr, a.len) == 0)
        return true; /* most are written the same way */
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i]))
            return false;
    }
    return true;
}

bool str_starts_with(struct str s, struct str prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

bool str_ends_with(struct str s, struct str suffix)
{
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.ptr + (s.len - suffix.len), suffix.ptr, suffix.len) == 0);
}

struct str str_trim(struct str s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

bool str_cut(struct str s, char at, struct str *head, struct str *tail)
{
    const char *found = s.len > 0 ? memchr(s.ptr, at, s.len) : NULL;
    if (found == NULL) {
        *head = s;
        *tail = STR_NONE;
        return false;
    }
    size_t before = (size_t)(found - s.ptr);
    *head = (struct str){s.ptr, before};
    *tail = (struct str){found + 1, s.len - before - 1};
    return true;
}

bool str_to_i64(struct str s, int64_t *ret)
{
    bool negative = s.len > 0 && s.ptr[0] == '-';
    size_t i = negative ? 1 : 0;
    if (i == s.len)
        return false;
    int64_t value = 0;
    for (; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
        int64_t digit = s.ptr[i] - '0';
        if (__builtin_mul_overflow(value, (int64_t)10, &value))
            return false;
        if (negative ? __builtin_sub_overflow(value, digit, &value)
                     : __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *ret = value;
    return true;
}

size_t str_utf8_len(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t left = s.len;
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xC2 && p[0] <= 0xDF && left >= 2 && (p[1] & 0xC0) == 0x80)
        return 2;
    if ((p[0] & 0xF0) == 0xE0 && left >= 3 && (p[1] & 0xC0) == 0x80 && (p[2] & 0xC0) == 0x80)
        return (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ? 0 : 3;
    if (p[0] >= 0xF0 && p[0] <= 0xF4 && left >= 4 && (p[1] & 0xC0) == 0x80 &&
        (p[2] & 0xC0) == 0x80 && (p[3] & 0xC0) == 0x80)
        return (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F) ? 0 : 4;
    return 0;
}

/* How much of the text's beginning is ASCII for certain. */
static size_t ascii_length(struct str s)
{
    size_t i = 0;
    for (uint64_t bytes; s.len - i >= sizeof(bytes); i += sizeof(bytes)) {
        memcpy(&bytes, s.ptr + i, sizeof(bytes));
        if ((bytes & UINT64_C(0x8080808080808080)) != 0)
            break;
    }
    return i;
}

bool str_is_utf8(struct str s)
{
    for (size_t i = ascii_length(s); i < s.len;) {
        size_t len = str_utf8_len((struct str){s.ptr + i, s.len - i});
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

void str_repair_utf8(char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t char_len = str_utf8_len((struct str){text + i, len - i});
        if (char_len == 0)
            text[i] = '?';
        i += MAX(char_len, (size_t)1);
    }
}

bool str_is_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.' || c == ':';
        if (!ok)
            return false;
    }
    return s.len > 0;
}

uint64_t str_hash(struct str s)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.len; i++) {
        hash ^= (unsigned char)s.ptr[i];
        hash *= 0x100000001b3u;
    }
    return hash;
}
