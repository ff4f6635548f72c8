/* The trace of a request: the client's, or a new one (W3C trace context). */
#include "http/internal.h"

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
static bool traceparent_ok(struct str t)
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

void trace_set(struct request *r)
{
    size_t count;
    struct str given = http_header(&r->pub, "traceparent", &count);
    if (count == 1 && traceparent_ok(given)) {
        r->pub.traceparent = given;
        memcpy(r->pub.trace_id, given.ptr + 3, 32);
        return;
    }
    static const char HEX[] = "0123456789abcdef";
    unsigned char random[16];
    env_random(r->server->config.env, random, sizeof(random));
    for (size_t i = 0; i < sizeof(random); i++) {
        r->pub.trace_id[2 * i] = HEX[random[i] >> 4];
        r->pub.trace_id[2 * i + 1] = HEX[random[i] & 15];
    }
}
