/* Webhooks: their receiver fails, hangs and loses acknowledgements, and gets every event. */
#define _GNU_SOURCE
#include "sim/events.h"
#include "sim/ledger.h"
#include "sim/receiver.h"
#include "sim/runs.h"

#include <stdlib.h>

enum { FAILED_MAX = 64 };

/* The webhook of the first tenant of a place. */
struct hook {
    char id[RUN_ID_LEN + 1]; /* "": none */
    struct ledger ledger;
    uint64_t failed[FAILED_MAX]; /* events that the receiver has refused once: not again */
    size_t failed_count;
    bool missed; /* events, while it was disabled */
};

struct webhooks {
    struct hook hooks[PLACES_MAX];
};

static struct webhooks *state(struct sim *w)
{
    return w->states[ACTOR_WEBHOOKS_NUMBER];
}

/* --- the receiver --- */

/* Each event fails once at most, so that no delivery runs out of attempts. */
static bool may_fail(struct sim *w, struct hook *h, struct str id)
{
    uint64_t hash = str_hash(id);
    if (w->calm || h->failed_count == FAILED_MAX || lot_below(&w->chaos, 100) >= 15)
        return false;
    for (size_t i = 0; i < h->failed_count; i++) {
        if (h->failed[i] == hash)
            return false;
    }
    h->failed[h->failed_count++] = hash;
    return true;
}

static int64_t fail(struct sim *w, struct hook *h, struct http_call *call, struct str id)
{
    switch (lot_below(&w->chaos, 4)) {
    case 0:
        sim_cover(w, "fault", "receiver refuses");
        receiver_answer(call, 500, "{}");
        return 3;
    case 1:
        sim_cover(w, "fault", "receiver away");
        http_call_end(call, CALL_CONNECT_FAILED, "nobody is there");
        return 1;
    case 2:
        sim_cover(w, "fault", "receiver hangs");
        ledger_take(w, &h->ledger, id, call->request.body);
        return INT64_MAX; /* it has got the event, and does not say so */
    default:
        sim_cover(w, "fault", "receiver loses its answer");
        ledger_take(w, &h->ledger, id, call->request.body);
        http_call_end(call, CALL_CONNECTION_LOST, "the connection was lost");
        return 5;
    }
}

int64_t hooks_receive(struct place *p, struct http_call *call)
{
    struct sim *w = p->sim;
    struct hook *h = &state(w)->hooks[p->number];
    struct str id = received_header(call, "webhook-id");
    sim_check(w, 6, id.len > 0, "a webhook without an id");
    if (may_fail(w, h, id))
        return fail(w, h, call, id);
    ledger_take(w, &h->ledger, id, call->request.body);
    receiver_answer(call, 200, "{}");
    return 2;
}

/* --- operators --- */

static void create(struct sim *w, struct place *p)
{
    struct hook *h = &state(w)->hooks[p->number];
    struct call *c = sim_ask(w, p, "t0", "POST", "/api/v1/webhooks",
                             "{\"url\":\"http://receiver.test/hooks/a\",\"events\":[\"*\"]}");
    assert(c != NULL);
    sim_check(w, 0, c->status < 300, "a webhook is refused: %d %s", c->status, c->code);
    (void)snprintf(h->id, sizeof(h->id), "%s", json_text(c->json, "id"));
    call_free(c);
}

/* Everything again: the receiver knows the ids. */
static void redeliver(struct sim *w)
{
    struct place *p = sim_any_place(w);
    const struct hook *h = &state(w)->hooks[p->number];
    char target[160];
    (void)snprintf(target, sizeof(target), "/api/v1/webhooks/%s/deliveries?limit=5", h->id);
    struct call *c = sim_ask(w, p, "t0", "GET", target, NULL);
    const json_t *items = c != NULL ? json_object_get(c->json, "items") : NULL;
    if (json_array_size(items) > 0) {
        const json_t *one =
            json_array_get(items, (size_t)lot_below(&w->lot, (int)json_array_size(items)));
        (void)snprintf(target, sizeof(target), "/api/v1/webhooks/%s/deliveries/%s/redeliver", h->id,
                       json_text(one, "id"));
        struct call_spec spec = {.place = p, .method = "POST", .target = target, .tenant = "t0"};
        (void)sim_send(w, &spec);
    }
    call_free(c);
}

/* --- the end --- */

static bool deliveries_wait(struct sim *w, struct place *p)
{
    char target[120];
    (void)snprintf(target, sizeof(target), "/api/v1/webhooks/%s/deliveries?limit=200",
                   state(w)->hooks[p->number].id);
    struct call *c = sim_ask(w, p, "t0", "GET", target, NULL);
    bool waits = c == NULL || c->status != 200;
    size_t i;
    json_t *delivery;
    json_array_foreach (c != NULL ? json_object_get(c->json, "items") : NULL, i, delivery) {
        const char *at = json_text(delivery, "state");
        waits |= strcmp(at, "delivered") != 0 && strcmp(at, "failed") != 0;
    }
    if (waits && c != NULL)
        sim_tell(w, "  deliveries of webhook %s wait: %d %s", state(w)->hooks[p->number].id,
                 c->status, c->code);
    call_free(c);
    return waits;
}

/* A webhook that was disabled after days of failures has missed events; it goes on with what
 * waits. */
static void enable(struct sim *w, struct place *p)
{
    struct hook *h = &state(w)->hooks[p->number];
    char target[80];
    (void)snprintf(target, sizeof(target), "/api/v1/webhooks/%s", h->id);
    struct call *c = sim_ask(w, p, "t0", "GET", target, NULL);
    bool disabled = c != NULL && json_text(c->json, "disabled_at")[0] != '\0';
    call_free(c);
    if (!disabled)
        return;
    sim_cover(w, "state", "webhook disabled");
    h->missed = true;
    call_free(sim_ask(w, p, "t0", "PUT", target, "{\"enabled\":true}"));
}

static bool finish(struct sim *w)
{
    bool waits = false;
    for (int i = 0; i < w->place_count && sim_on(w, ON_WEBHOOKS); i++) {
        if (!deliveries_wait(w, &w->places[i]))
            continue;
        enable(w, &w->places[i]);
        waits = true;
    }
    return waits;
}

static void last(struct sim *w)
{
    for (int i = 0; i < w->place_count && sim_on(w, ON_WEBHOOKS); i++) {
        const struct hook *h = &state(w)->hooks[i];
        enable(w, &w->places[i]);
        for (struct seen_run *r = runs_first(w); r != NULL && !h->missed; r = r->next) {
            if (r->place != i || r->tenant != 0 || r->removed)
                continue;
            int64_t count = events_last_of(w, r);
            int64_t got = ledger_count(&h->ledger, r->id);
            sim_check(w, 6, count < 0 || got == count,
                      "a webhook has received %lld of %lld events of run %s", (long long)got,
                      (long long)count, r->id);
        }
    }
}

/* --- life --- */

static void begin(struct sim *w)
{
    w->states[ACTOR_WEBHOOKS_NUMBER] = calloc(1, sizeof(struct webhooks));
    assert(state(w) != NULL);
    for (int i = 0; i < w->place_count; i++) {
        state(w)->hooks[i].ledger = (struct ledger){.name = "a webhook"};
        if (sim_on(w, ON_WEBHOOKS))
            create(w, &w->places[i]);
    }
}

static void release(struct sim *w)
{
    for (int i = 0; i < w->place_count; i++)
        ledger_release(&state(w)->hooks[i].ledger);
    free(state(w));
    w->states[ACTOR_WEBHOOKS_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"something is delivered again", 3, NEEDS(ON_WEBHOOKS), redeliver},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_WEBHOOKS = {.name = "webhooks",
                                     .actions = ACTIONS,
                                     .begin = begin,
                                     .finish = finish,
                                     .last = last,
                                     .free = release};
