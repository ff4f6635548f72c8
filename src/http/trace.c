/* The trace of a request: the client's, or a new one (W3C trace context). */
#include "base/trace/trace.h"

#include "http/internal.h"

void trace_set(struct request *r)
{
    size_t count;
    struct str given = http_header(&r->pub, "traceparent", &count);
    if (count == 1 && traceparent_ok(given)) {
        r->pub.traceparent = (struct str){given.ptr, TRACEPARENT_LEN};
        memcpy(r->pub.trace_id, given.ptr + TRACE_ID_AT, TRACE_ID_LEN);
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
