/* The trace of a request: the client's, or a new one. */
#include "http/mhd/internal.h"

static bool is_hex(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
    }
    return true;
}

/* W3C trace context: 00-TRACE-SPAN-FLAGS, lower case hex, TRACE and SPAN not all zero. */
static bool traceparent_ok(struct str t)
{
    if (t.len != 55 || t.ptr[2] != '-' || t.ptr[35] != '-' || t.ptr[52] != '-')
        return false;
    struct str version = {t.ptr, 2};
    struct str trace = {t.ptr + 3, 32};
    struct str span = {t.ptr + 36, 16};
    struct str flags = {t.ptr + 53, 2};
    return is_hex(version) && is_hex(trace) && is_hex(span) && is_hex(flags) &&
           !str_is(version, "ff") && !str_is(trace, "00000000000000000000000000000000") &&
           !str_is(span, "0000000000000000");
}

void request_set_trace(struct request *r)
{
    struct str given = http_header(&r->pub, "traceparent", NULL);
    if (traceparent_ok(given)) {
        r->pub.traceparent = arena_str(&r->pub.arena, given);
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
