/* A sequence of requests to any routes, with time passing in between, on a whole server. The server
 * checks each answer (server/fuzz_server.h); at the end the doctor must find nothing. */
#include "server/begin.h"

#include "server/receiver.h"
#include "server/route_request.h"

enum { REQUESTS_MAX = 24, TIME_FROM = 224 };

static void ask(const struct route *route, struct taker *t)
{
    struct route_request r;
    route_request_make(&r, route, t);
    struct fuzz_answer a = fuzz_ask(&r.request);
    json_decref(a.json);
    route_request_release(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct taker t = {data, size};
    fuzz_server_open(1);
    receiver_decides(&t);
    for (int i = 0; i < REQUESTS_MAX && t.left > 0; i++) {
        unsigned what = take_byte(&t);
        if (what >= TIME_FROM) /* a millisecond to three weeks */
            fuzz_server_pass_ms(INT64_C(1) << (what - TIME_FROM));
        else
            ask(route_at(what), &t);
    }
    receiver_decides(NULL);
    fuzz_server_check_doctor();
    fuzz_server_close();
    return 0;
}
