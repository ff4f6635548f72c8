/* Webhooks and their deliveries on the real engine, for the tests about them. */
#ifndef PAWL_TESTS_WEBHOOK_SUPPORT_H
#define PAWL_TESTS_WEBHOOK_SUPPORT_H

#include "engine/actions.h"
#include "engine/calling_fixture.h"

#include "core/usecase/outgoing/deliveries.h"

/* --- acts --- */

/* The answer, owned by the caller. */
static inline json_t *create_as(struct calling_fixture *h, const char *tenant, const char *path,
                                const char *events)
{
    char url[128];
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", h->receiver->port, path);
    struct put_webhook_input in = {.url = str_of(url), .events = str_of(events)};
    struct call c;
    call_init(&c, h->fixture, &UC_CREATE_WEBHOOK);
    c.op.caller.tenant = str_of(tenant);
    c.op.input = &in;
    must_perform(&c);
    json_t *made = parsed_str(buf_str(&c.op.answer.body));
    call_release(&c);
    return made;
}

static inline struct uuid create(struct calling_fixture *h, const char *path, const char *events)
{
    struct uuid id;
    json_t *made = create_as(h, "acme", path, events);
    assert_true(uuid_parse(json_str(json_object_get(made, "id")), &id));
    json_decref(made);
    return id;
}

static inline void change(struct calling_fixture *h, struct put_webhook_input in)
{
    struct call c;
    call_init(&c, h->fixture, &UC_PUT_WEBHOOK);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
}

/* The writer has fanned out all that there is. */
static inline void fan_out_all(struct calling_fixture *h)
{
    fixture_pass_ms(h->fixture, FAN_OUT_PAUSE_MS + 1);
    settle(h->fixture);
    fixture_pass_ms(h->fixture, FAN_OUT_PAUSE_MS + 1);
    settle(h->fixture);
}

static inline int64_t deliveries(struct calling_fixture *h, const char *where)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM deliveries WHERE %s", where);
    return in_file(h->fixture, sql);
}

#define assert_deliveries(h, where, count) assert_int_equal(deliveries((h), (where)), (count))

/* Turns the loop until so many deliveries are as said. The test's clock stands still. */
static inline void wait_deliveries(struct calling_fixture *h, const char *where, int64_t count)
{
    int64_t until = real_seconds() + GIVE_UP_S;
    while (deliveries(h, where) != count) {
        if (real_seconds() >= until)
            fail_msg("%lld deliveries are %s, wanted %lld", (long long)deliveries(h, where), where,
                     (long long)count);
        fixture_round(h->fixture);
    }
}

static inline size_t received(struct calling_fixture *h)
{
    pthread_mutex_lock(&h->receiver->lock);
    size_t count = h->receiver->request_count;
    pthread_mutex_unlock(&h->receiver->lock);
    return count;
}

#endif
