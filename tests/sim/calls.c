/* Clients and the network between them and the servers. */
#include "sim/nodes/nodes.h"
#include "sim/sim.h"

#include <stdarg.h>
#include <stdlib.h>

/* --- calls --- */

static const char *keep(char **at, const char *text)
{
    if (text == NULL)
        return NULL;
    char *copy = *at;
    size_t len = strlen(text) + 1;
    memcpy(copy, text, len);
    *at += len;
    return copy;
}

static size_t room_of(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

static struct call *call_new(const struct call_spec *spec)
{
    struct call *c = calloc(1, sizeof(*c));
    assert(c != NULL);
    c->spec = *spec;
    c->texts = malloc(room_of(spec->target) + room_of(spec->tenant) + room_of(spec->actor) +
                      room_of(spec->api_key) + room_of(spec->key) + room_of(spec->if_match) +
                      room_of(spec->body) + 1);
    assert(c->texts != NULL);
    char *at = c->texts;
    c->spec.target = keep(&at, spec->target);
    c->spec.tenant = keep(&at, spec->tenant);
    c->spec.actor = keep(&at, spec->actor);
    c->spec.api_key = keep(&at, spec->api_key);
    c->spec.key = keep(&at, spec->key);
    c->spec.if_match = keep(&at, spec->if_match);
    c->spec.body = keep(&at, spec->body);
    c->code = "";
    return c;
}

static void forget_answer(struct call *c)
{
    json_decref(c->json);
    c->json = NULL;
    c->status = 0;
    c->code = "";
    c->replayed = false;
}

static void close_exchanges(struct call *c)
{
    if (c->x != NULL)
        sim_http_close(c->x);
    if (c->copy != NULL)
        sim_http_close(c->copy);
    c->x = c->copy = NULL;
}

void call_free(struct call *c)
{
    if (c == NULL)
        return;
    close_exchanges(c);
    forget_answer(c);
    free(c->texts);
    free(c);
}

int sim_calls_open(const struct sim *w)
{
    int count = 0;
    for (const struct call *c = w->calls; c != NULL; c = c->next)
        count += c->state != CALL_OVER;
    return count;
}

/* --- sending --- */

static struct sim_exchange *deliver(const struct call *c, struct sim_http *to)
{
    struct sim_header headers[8];
    size_t count = 0;
    headers[count++] = (struct sim_header){"Host", "127.0.0.1:7295"};
    if (c->spec.tenant != NULL)
        headers[count++] = (struct sim_header){"X-Tenant-ID", c->spec.tenant};
    if (c->spec.actor != NULL)
        headers[count++] = (struct sim_header){"X-Actor", c->spec.actor};
    if (c->spec.api_key != NULL)
        headers[count++] = (struct sim_header){"X-API-Key", c->spec.api_key};
    if (c->spec.key != NULL)
        headers[count++] = (struct sim_header){"Idempotency-Key", c->spec.key};
    if (c->spec.if_match != NULL)
        headers[count++] = (struct sim_header){"If-Match", c->spec.if_match};
    if (c->spec.body != NULL)
        headers[count++] = (struct sim_header){"Content-Type", "application/json"};
    struct sim_request request = {.method = c->spec.method,
                                  .target = c->spec.target,
                                  .headers = headers,
                                  .header_count = count,
                                  .body = str_of(c->spec.body != NULL ? c->spec.body : "")};
    return sim_http_send(to, &request);
}

/* No answer will come. */
static void lose(struct sim *w, struct call *c)
{
    close_exchanges(c);
    if (c->spec.retries) {
        c->state = CALL_WAITS;
        c->wait_steps = w->calm ? 0 : lot_below(&w->lot, 4);
        return;
    }
    forget_answer(c);
    c->state = CALL_OVER;
}

static bool unlucky(struct sim *w, const struct call *c, int percent, const char *fault)
{
    if (w->calm || c->spec.at_once || !sim_on(w, ON_NETWORK) || !lot_percent(&w->lot, percent))
        return false;
    sim_cover(w, "fault", fault);
    return true;
}

static void transmit(struct sim *w, struct call *c)
{
    struct place *p = c->spec.place;
    struct sim_http *to = c->spec.at_once ? place_http_now(w, p) : place_http(w, p);
    c->tries++;
    if (!p->up || to == NULL || unlucky(w, c, 4, "request lost")) {
        if (p->up)
            sim_tell(w, "  the network loses %s %s", c->spec.method, c->spec.target);
        lose(w, c);
        return;
    }
    c->state = CALL_AT_SERVER;
    c->answer_lost = unlucky(w, c, 5, "answer lost");
    if (c->spec.doubles && unlucky(w, c, 6, "request doubled")) {
        c->copies++;
        c->copy = deliver(c, to);
    }
    if (c->spec.doubles && p->nodes != NULL)
        c->copies++; /* a node may have to ask twice */
    c->arrived++;
    c->x = deliver(c, to);
}

struct call *sim_send(struct sim *w, const struct call_spec *spec)
{
    struct call *c = call_new(spec);
    c->sent = ++w->clock;
    c->sent_ms = sim_now_ms(w);
    struct call **at = &w->calls;
    while (*at != NULL)
        at = &(*at)->next;
    *at = c;
    sim_tell(w, "  %d: %s %s%s%s%s%s %.300s", spec->place->number, spec->method, spec->target,
             spec->tenant != NULL ? " tenant " : "", spec->tenant != NULL ? spec->tenant : "",
             spec->key != NULL ? " key " : "", spec->key != NULL ? spec->key : "",
             spec->body != NULL ? spec->body : "");
    if (unlucky(w, c, 10, "request delayed"))
        c->wait_steps = 1 + lot_below(&w->lot, 5);
    else
        transmit(w, c);
    return c;
}

void sim_hang_up(struct sim *w, struct call *c)
{
    sim_cover(w, "fault", "client hangs up");
    sim_tell(w, "  the client of %s %s hangs up", c->spec.method, c->spec.target);
    close_exchanges(c);
    forget_answer(c);
    c->state = CALL_OVER;
}

/* --- answers --- */

static void read_answer(struct sim *w, struct call *c)
{
    const struct sim_exchange *x = c->x;
    forget_answer(c);
    c->status = x->status;
    const char *replayed = sim_http_answer_header(x, "Idempotent-Replayed");
    c->replayed = replayed != NULL && strcmp(replayed, "true") == 0;
    struct str body = buf_str(&x->body);
    w->digest = (w->digest ^ str_hash(body)) * UINT64_C(1099511628211) + (uint64_t)x->status;
    json_error_t ignored;
    c->json = json_loadb(body.ptr, body.len, JSON_DECODE_ANY, &ignored);
    if (c->status >= 400) {
        sim_check(w, 0, json_is_object(c->json), "an error without a problem: %d %.*s", c->status,
                  STR_ARG(body));
        c->code = json_text(c->json, "code");
        sim_check(w, 0, c->code[0] != '\0', "a problem without a code: %.*s", STR_ARG(body));
        sim_check(w, 0, c->status != 500, "500 %s: %s", c->code, json_text(c->json, "detail"));
        sim_cover(w, "error", c->code);
    }
}

/* Says that the same request may succeed later, and nothing was done. */
static bool says_retry(const struct call *c)
{
    return c->status == 503 || strcmp(c->code, "IDEMPOTENCY_IN_FLIGHT") == 0;
}

static void take_answer(struct sim *w, struct call *c)
{
    read_answer(w, c);
    c->answered = ++w->clock;
    sim_tell(w, "  %d: -> %d%s%s%s %.400s", c->spec.place->number, c->status,
             c->replayed ? " replayed" : "", c->code[0] != '\0' ? " " : "", c->code,
             c->x->body.len > 0 && c->status < 400 ? c->x->body.ptr : "");
    if (c->answer_lost || (c->spec.retries && says_retry(c))) {
        if (c->answer_lost)
            sim_tell(w, "  the network loses that answer");
        lose(w, c);
        return;
    }
    close_exchanges(c);
    c->state = CALL_OVER;
}

static void look(struct sim *w, struct call *c)
{
    if (c->state == CALL_WAITS && c->wait_steps-- <= 0)
        transmit(w, c);
    if (c->state != CALL_AT_SERVER)
        return;
    if (c->x->answered && !c->x->streams)
        take_answer(w, c);
    else if (c->x->cut)
        lose(w, c);
}

static void finish_over(struct sim *w)
{
    for (struct call **at = &w->calls; *at != NULL;) {
        struct call *c = *at;
        if (c->state != CALL_OVER) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        c->next = NULL;
        if (c->spec.done != NULL)
            c->spec.done(w, c); /* may send others: they go to the end */
        call_free(c);
        at = &w->calls;
    }
}

void sim_calls_turn(struct sim *w)
{
    for (struct call *c = w->calls; c != NULL; c = c->next)
        look(w, c);
    finish_over(w);
}

enum { NODE_WAIT_MS = 50, NODE_WAITS_MAX = 2000, NODE_TRIES_MAX = 20, NODE_AGAIN_MS = 600 };

/* A node that has to ask another one, which may stand still. */
static void wait_for_node(struct sim *w, struct call *c)
{
    fibers_pass_ns(NODE_WAIT_MS * INT64_C(1000000));
    w->leap_ms += NODE_WAIT_MS;
    if (++c->wait_steps > NODE_WAITS_MAX)
        close_exchanges(c);
}

struct call *sim_ask(struct sim *w, struct place *p, const char *tenant, const char *method,
                     const char *target, const char *body)
{
    return sim_ask_as(w, p, NULL, tenant, method, target, body);
}

static struct call *ask_once(struct sim *w, const struct call_spec *spec)
{
    struct place *p = spec->place;
    struct call *c = call_new(spec);
    c->sent = ++w->clock;
    transmit(w, c);
    place_settle_now(w, p); /* the next power cut may come before a sync that is under way */
    while (c->x != NULL && p->up && !c->x->answered && !c->x->cut) {
        place_settle(w, p);
        if (p->nodes != NULL)
            wait_for_node(w, c);
    }
    if (c->x == NULL || !p->up || c->x->cut) {
        call_free(c);
        return NULL;
    }
    c->answered = ++w->clock;
    read_answer(w, c);
    close_exchanges(c);
    return c;
}

/* Nothing was done, because the shard changes hands or its owner has no connection. */
static bool comes_later(const struct call *c)
{
    return c != NULL &&
           (strcmp(c->code, "SHARD_UNAVAILABLE") == 0 || strcmp(c->code, "STORE_BUSY") == 0);
}

static struct call *ask_nodes(struct sim *w, const struct call_spec *spec)
{
    struct call *c = NULL;
    spec->place->nodes->quiet = true;
    for (int tries = 0; tries < NODE_TRIES_MAX && (tries == 0 || comes_later(c)); tries++) {
        if (tries > 0)
            fibers_pass_ns(NODE_AGAIN_MS * INT64_C(1000000));
        call_free(c);
        c = ask_once(w, spec);
    }
    spec->place->nodes->quiet = false;
    return c;
}

struct call *sim_ask_as(struct sim *w, struct place *p, const char *actor, const char *tenant,
                        const char *method, const char *target, const char *body)
{
    if (!p->up)
        return NULL;
    struct call_spec spec = {.place = p,
                             .method = method,
                             .target = target,
                             .tenant = tenant,
                             .actor = actor,
                             .body = body,
                             .at_once = true};
    return p->nodes != NULL ? ask_nodes(w, &spec) : ask_once(w, &spec);
}

/* --- reading answers --- */

const char *json_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

int64_t json_number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}
