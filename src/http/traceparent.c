#include "http/traceparent.h"

enum { TRACEPARENT_LEN = 55 }; /* of version 00; later ones may add parts after it */

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
    struct str trace = {t.ptr + 3, 32};
    struct str span = {t.ptr + 36, 16};
    struct str flags = {t.ptr + 53, 2};
    bool length_ok =
        t.len == TRACEPARENT_LEN || (!is_zero(version) && t.ptr[TRACEPARENT_LEN] == '-');
    return length_ok && is_lower_hex(version) && is_lower_hex(trace) && is_lower_hex(span) &&
           is_lower_hex(flags) && !str_is(version, "ff") && !is_zero(trace) && !is_zero(span);
}
