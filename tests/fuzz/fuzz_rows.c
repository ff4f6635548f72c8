/* Damaged rows: a value of any type in any column of a sound store, or a row that is missing. Then
 * reads, changes, background work, the doctor and its repair go on: each answers, with an error if
 * need be. Damage never ends the process. */
#include "server/begin.h"

#include "server/damage.h"
#include "server/kept_store.h"
#include "server/route_request.h"

enum { REQUESTS_MAX = 12, READS = 12 };

static void begin(void)
{
    static bool begun;
    if (begun)
        return;
    begun = true;
    damage_setup(kept_store_raw());
    kept_store_keep();
    fuzz_server_expect_damage(true);
}

static void ask_for(const struct route *route, struct taker *t)
{
    struct route_request r;
    route_request_make(&r, route, t);
    struct fuzz_answer a = fuzz_ask(&r.request);
    json_decref(a.json);
    route_request_release(&r);
}

/* Some of the routes that only read, whatever the input says next. */
static void read_some(size_t from)
{
    for (size_t i = 0; i < READS; i++) {
        const struct route *route = route_at(from + i * 13);
        if (strcmp(route->method, "GET") != 0)
            continue;
        struct route_request r;
        route_request_plain(&r, route, from);
        struct fuzz_answer a = fuzz_ask(&r.request);
        json_decref(a.json);
        route_request_release(&r);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin();
    struct taker t = {data, size};
    kept_store_reset();
    damage_do(kept_store_raw(), &t);
    if (!fuzz_server_try_open(1))
        return 0;
    read_some(take_byte(&t));
    fuzz_server_pass_ms(INT64_C(1) << take_below(&t, 32));
    for (int i = 0; i < REQUESTS_MAX && t.left > 0; i++)
        ask_for(route_at(take_byte(&t)), &t);
    fuzz_server_pass_ms(INT64_C(3600000));
    (void)fuzz_do("GET", "/api/v1/doctor", NULL, NULL);
    (void)fuzz_do("POST", "/api/v1/doctor/repair", NULL, NULL);
    fuzz_server_pass_ms(INT64_C(3600000));
    fuzz_server_close();
    return 0;
}
