/* A sequence of requests to any routes, with time passing in between, on a whole server. The server
 * checks each answer (server/fuzz_server.h), a request with a key is repeated, and at the end the
 * doctor must find nothing. */
#include "server/begin.h"

#include "server/receiver.h"
#include "server/route_request.h"

enum { REQUESTS_MAX = 24, TIME_FROM = 224 };

static bool has_key(const struct fuzz_request *r)
{
    for (size_t i = 0; i < r->header_count; i++) {
        if (str_is(r->headers[i].name, "Idempotency-Key"))
            return true;
    }
    return false;
}

/* The same request again under its key: the same run, and no second one. */
static void check_replay(const struct fuzz_request *r, const struct fuzz_answer *first)
{
    struct str run = json_str(json_object_get(first->json, "run_id"));
    if (!has_key(r) || str_is(r->method, "GET") || first->status < 200 || first->status > 202 ||
        run.ptr == NULL)
        return;
    struct fuzz_answer again = fuzz_ask(r);
    assert(again.status == first->status);
    assert(str_eq(json_str(json_object_get(again.json, "run_id")), run));
    json_decref(again.json);
}

static void ask(const struct route *route, struct taker *t)
{
    struct route_request r;
    route_request_make(&r, route, t);
    int64_t asked_at = fuzz_server_now_ms();
    struct fuzz_answer a = fuzz_ask(&r.request);
    if (fuzz_server_now_ms() == asked_at) /* a key may expire while a request waits */
        check_replay(&r.request, &a);
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
