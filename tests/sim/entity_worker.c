/* Workers of entities: they die, answer late and twice, fail, and set timers. */
#include "sim/entities.h"

#include <stdarg.h>
#include <stdlib.h>

enum { LEASE_MS = 4000, LEASE_MS_MAX = 43200000, TEXT_MAX = 6000 };

/* A text that is put together; it must fit. */
struct text {
    char at[TEXT_MAX];
    size_t len;
};

static void put(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void put(struct text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->at + t->len, sizeof(t->at) - t->len, fmt, args);
    va_end(args);
    assert(n >= 0 && t->len + (size_t)n < sizeof(t->at));
    t->len += (size_t)n;
}

/* --- what a call must be --- */

static void check_signals(struct sim *w, struct entity *e, const json_t *input)
{
    const json_t *state = json_object_get(input, "state");
    int64_t before = json_is_object(state) ? json_number(state, "last") : 0;
    size_t i;
    json_t *signal;
    json_array_foreach (json_object_get(input, "signals"), i, signal) {
        int64_t seq = json_number(signal, "seq");
        sim_check(w, 5, before == 0 || seq == before + 1, "%s is called with %lld after %lld",
                  e->inbox.owner, (long long)seq, (long long)before);
        struct inbox_signal *s =
            inbox_consume(w, &e->inbox, json_number(json_object_get(signal, "payload"), "m"), seq);
        if (s->seq == 0)
            s->seq = seq;
        before = seq;
    }
}

/* A timer that fires is set, and due. */
static void check_fired(struct sim *w, struct entity *e, const json_t *input)
{
    const json_t *state = json_object_get(input, "state");
    size_t i;
    json_t *timer;
    json_array_foreach (json_object_get(input, "timers"), i, timer) {
        const char *name = json_text(timer, "name");
        int64_t payload = json_integer_value(json_object_get(timer, "payload"));
        sim_check(w, 5, json_is_object(state) && json_number(state, name) == payload,
                  "timer %s (%lld) of %s fires, but is not set", name, (long long)payload,
                  e->inbox.owner);
        sim_check(w, 5,
                  time_of(json_text(timer, "due_at")) <=
                      entities_state(w)->clocks.latest_ms[e->inbox.place],
                  "timer %s of %s fires before its time", name, e->inbox.owner);
        sim_cover(w, "entity", "timer fired");
    }
}

/* An entity has one call at a time, and the same call has the same signals. */
static void check_alone(struct sim *w, struct entity *e, const char *job, const json_t *input)
{
    struct entities *s = entities_state(w);
    const json_t *signals = json_object_get(input, "signals");
    const json_t *last = json_array_get(signals, json_array_size(signals) - 1);
    int64_t through = json_array_size(signals) > 0 ? json_number(last, "seq") : 0;
    for (int i = 0; i < ENTITY_CALLS_MAX; i++) {
        const struct entity_call *x = &s->calls[i];
        bool live = x->held && x->entity == e && x->incarnation == e->incarnation &&
                    s->clocks.latest_ms[e->inbox.place] < x->expires_ms;
        sim_check(w, 3, !live, "%s is called by job %s while job %s is under way", e->inbox.owner,
                  job, x->job);
    }
    sim_check(w, 5, strcmp(e->job, job) != 0 || e->job_through == through,
              "job %s had signals up to %lld, now up to %lld", job, (long long)e->job_through,
              (long long)through);
    (void)snprintf(e->job, sizeof(e->job), "%s", job);
    e->job_through = through;
}

/* --- the handler --- */

static void put_results(struct text *t, const json_t *input)
{
    size_t i;
    json_t *signal;
    bool any = false;
    json_array_foreach (json_object_get(input, "signals"), i, signal) {
        int64_t mark = json_number(json_object_get(signal, "payload"), "m");
        int64_t seq = json_number(signal, "seq");
        if (!json_is_true(json_object_get(signal, "update")))
            continue;
        put(t, "%s{\"seq\":%lld,", any ? "," : ",\"results\":[", (long long)seq);
        if (mark % 3 == 0)
            put(t, "\"error\":{\"code\":\"NO\"}}");
        else
            put(t, "\"result\":{\"m\":%lld,\"s\":%lld}}", (long long)mark, (long long)seq);
        any = true;
    }
    put(t, "%s", any ? "]" : "");
}

/* What becomes of each timer; returns its payload in the new state. */
static int64_t next_timer(struct sim *w, const json_t *input, const char *name, struct text *set,
                          struct text *cancel)
{
    const json_t *state = json_object_get(input, "state");
    int64_t is = json_is_object(state) ? json_number(state, name) : 0;
    bool migrates = strcmp(json_text(input, "kind"), "migrate") == 0;
    size_t i;
    json_t *timer;
    json_array_foreach (json_object_get(input, "timers"), i, timer) {
        if (strcmp(json_text(timer, "name"), name) == 0)
            is = 0;
    }
    int chance = w->calm || migrates ? 99 : lot_below(&w->lot, 100);
    if (chance < 25) {
        is = ++entities_state(w)->timers;
        put(set, "%s{\"name\":\"%s\",\"in_ms\":%lld,\"payload\":%lld}", set->len > 0 ? "," : "",
            name, (long long)lot_between(&w->lot, 1, 300 * 1000), (long long)is);
    } else if (chance < 35 && is > 0) {
        is = 0;
        put(cancel, "%s\"%s\"", cancel->len > 0 ? "," : "", name);
    }
    return is;
}

static void put_state(struct text *t, const json_t *input, const int64_t timers[ENTITY_TIMERS],
                      int by)
{
    const json_t *state = json_object_get(input, "state");
    int64_t last = json_is_object(state) ? json_number(state, "last") : 0;
    size_t i;
    json_t *signal;
    put(t, "\"state\":{\"log\":\"%s", json_text(state, "log"));
    json_array_foreach (json_object_get(input, "signals"), i, signal) {
        last = json_number(signal, "seq");
        put(t, "%lld:%lld;", (long long)last,
            (long long)json_number(json_object_get(signal, "payload"), "m"));
    }
    put(t, "\",\"last\":%lld,\"a\":%lld,\"b\":%lld,\"by\":%d}", (long long)last,
        (long long)timers[0], (long long)timers[1], by);
}

/* The body that completes the call. */
static void handle(struct sim *w, const json_t *input, const char *token, int by, struct text *t)
{
    static struct text set, cancel;
    int64_t timers[ENTITY_TIMERS] = {0, 0};
    bool finishes =
        !w->calm && strcmp(json_text(input, "kind"), "signals") == 0 && lot_percent(&w->lot, 5);
    t->len = set.len = cancel.len = 0;
    if (!finishes) {
        timers[0] = next_timer(w, input, "a", &set, &cancel);
        timers[1] = next_timer(w, input, "b", &set, &cancel);
    }
    put(t, "{\"lease_token\":\"%s\",\"output\":{", token);
    put_state(t, input, timers, by);
    if (set.len > 0)
        put(t, ",\"set_timers\":[%s]", set.at);
    if (cancel.len > 0)
        put(t, ",\"cancel_timers\":[%s]", cancel.at);
    if (by % 4 == 0)
        put(t, ",\"emit\":[{\"event\":\"handled.it\",\"payload\":%d}]", by);
    if (entity_result_starts(by))
        put(t, ",\"start\":[{\"workflow_id\":\"es\",\"idempotency_key\":\"" ENTITY_START_KEY "\"}]",
            by);
    put_results(t, input);
    put(t, "%s}}", finishes ? ",\"finished\":true" : "");
}

/* --- results --- */

static void result_accepted(struct sim *w, const struct call *c, const struct entity_call *x)
{
    struct entity *e = x->entity;
    struct entity_result *r = &entities_state(w)->results[x->number];
    int64_t version = json_number(c->json, "version");
    sim_check(w, 3, x->incarnation == e->incarnation, "%s was deleted, and takes a result",
              e->inbox.owner);
    sim_check(w, 3, r->version >= 0 && version == x->version_floor + 1,
              "a result on version %lld of %s is version %lld", (long long)x->version_floor,
              e->inbox.owner, (long long)version);
    sim_check(w, 3, r->version == 0 || r->version == version, "result %d of %s has two versions",
              x->number, e->inbox.owner);
    for (int i = 0; i < entities_state(w)->result_count; i++) {
        const struct entity_result *other = &entities_state(w)->results[i];
        sim_check(w, 3,
                  other == r || other->entity != e->number || other->version != version ||
                      other->incarnation != e->incarnation,
                  "two results are version %lld of %s", (long long)version, e->inbox.owner);
    }
    r->version = version;
    if (version > e->version) {
        e->version = version;
        e->shown_at = c->answered;
    }
}

static void completed(struct sim *w, struct call *c)
{
    struct entity_call *x = c->spec.ref;
    struct entity_result *r = &entities_state(w)->results[x->number];
    x->entity->results_open--;
    if (c->status == 200 && strcmp(json_text(c->json, "status"), "completed") == 0) {
        sim_check(w, 3,
                  c->tries > 1 || c->copies > 0 || sim_on(w, ON_CLOCKS) ||
                      c->spec.number < x->expires_ms,
                  "%s takes a result after the lease of job %s", x->entity->inbox.owner, x->job);
        result_accepted(w, c, x);
    } else if (c->status == 409) {
        sim_check(w, 3, strcmp(c->code, "LEASE_LOST") == 0, "a result is answered %s", c->code);
        sim_check(w, 3, r->version <= 0, "result %d of %s was applied and then refused", x->number,
                  x->entity->inbox.owner);
        r->version = -1;
    }
    sim_check(w, 3, call_in_doubt(c) || c->status == 200 || c->status == 409 || c->status == 404,
              "a result of %s is answered %d %s %s", x->entity->inbox.owner, c->status, c->code,
              json_text(c->json, "detail"));
    free(x);
}

/* Sends the result, or anything else that needs the lease. */
static void answer(struct sim *w, const struct entity_call *call, const char *what,
                   const char *body, void (*done)(struct sim *w, struct call *c))
{
    char tenant[8], target[96];
    struct place *p = &w->places[call->entity->inbox.place];
    struct entity_call *x = NULL;
    if (done != NULL) {
        x = malloc(sizeof(*x));
        assert(x != NULL);
        *x = *call;
        call->entity->results_open++;
    }
    tenant_name(tenant, call->entity->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s/%s", call->job, what);
    struct call_spec spec = {.place = p,
                             .method = "POST",
                             .target = target,
                             .tenant = tenant,
                             .body = body,
                             .retries = done != NULL,
                             .doubles = done != NULL,
                             .done = done,
                             .ref = x,
                             .number = place_wall_ms(w, p)};
    (void)sim_send(w, &spec);
}

static int new_result(struct sim *w, const struct entity *e)
{
    struct entities *s = entities_state(w);
    s->results[s->result_count] =
        (struct entity_result){.entity = (char)e->number, .incarnation = e->incarnation};
    return s->result_count++;
}

/* A second result under the same lease, with another number: one of the two counts. */
static void answer_twice(struct sim *w, struct entity_call *x, const json_t *input)
{
    static struct text t;
    answer(w, x, "complete", x->result, completed);
    if (entities_state(w)->result_count >= ENTITY_RESULTS_MAX)
        return;
    x->number = new_result(w, x->entity);
    handle(w, input, x->token, x->number, &t);
    answer(w, x, "complete", t.at, completed);
}

static void fail(struct sim *w, const struct entity_call *x)
{
    char body[200];
    (void)snprintf(body, sizeof(body),
                   "{\"lease_token\":\"%s\",\"error\":{\"code\":\"X\",\"retryable\":%s}}", x->token,
                   lot_percent(&w->lot, 70) ? "true" : "false");
    answer(w, x, "fail", body, NULL);
}

static void give_back(struct sim *w, const struct entity_call *x)
{
    char body[120];
    (void)snprintf(body, sizeof(body), "{\"lease_token\":\"%s\"}", x->token);
    answer(w, x, "release", body, NULL);
}

/* What this worker does with its call. */
static void work(struct sim *w, struct entity_call *x, const json_t *input)
{
    int chance = w->calm || !sim_on(w, ON_WORKERS) ? 0 : lot_below(&w->lot, 100);
    x->held = false;
    if (chance < 55)
        answer(w, x, "complete", x->result, completed);
    else if (chance < 60)
        answer_twice(w, x, input);
    else if (chance < 70)
        fail(w, x);
    else if (chance < 75)
        give_back(w, x);
    else
        x->held = true; /* it is slow, or dies */
}

void entity_late_result(struct sim *w)
{
    struct entities *s = entities_state(w);
    struct entity_call *found = NULL;
    int count = 0;
    for (int i = 0; i < ENTITY_CALLS_MAX; i++) {
        if (s->calls[i].held && lot_below(&w->lot, ++count) == 0)
            found = &s->calls[i];
    }
    if (found == NULL || found->entity->deleting)
        return;
    found->held = false;
    answer(w, found, "complete", found->result, completed);
}

/* --- claims --- */

/* A place for a call: that of one which is over, or whose lease is. */
static struct entity_call *free_call(struct sim *w)
{
    struct entities *s = entities_state(w);
    struct entity_call *x = &s->calls[0];
    for (int i = 1; i < ENTITY_CALLS_MAX; i++) {
        if (x->held && (!s->calls[i].held || s->calls[i].expires_ms < x->expires_ms))
            x = &s->calls[i];
    }
    (void)w;
    return x;
}

static void take_job(struct sim *w, const struct call *c, const json_t *job)
{
    static struct text t;
    const json_t *input = json_object_get(job, "input");
    const json_t *name = json_object_get(input, "entity");
    struct entity *e =
        entity_named(w, c->spec.place->number, json_text(name, "type"), json_text(name, "id"));
    sim_check(w, 3, e != NULL, "a call of an entity that nobody has signalled");
    const json_t *first = json_array_get(json_object_get(input, "signals"), 0);
    people_watch(w, &entities_state(w)->clocks);
    const json_t *state = json_object_get(input, "state");
    int64_t consumed = first != NULL ? json_number(first, "seq") - 1
                                     : MAX(e->consumed, json_number(state, "last"));
    entity_check_state(w, e, c, state, json_number(input, "version"), consumed);
    check_signals(w, e, input);
    check_fired(w, e, input);
    check_alone(w, e, json_text(job, "job_id"), input);
    sim_cover(w, "entity call", json_text(input, "kind"));
    if (entities_state(w)->result_count >= ENTITY_RESULTS_MAX - 50 && !w->calm)
        return; /* the end needs some */
    struct entity_call *x = free_call(w);
    free(x->result);
    *x = (struct entity_call){.entity = e,
                              .incarnation = e->incarnation,
                              .number = new_result(w, e),
                              .expires_ms = time_of(json_text(job, "lease_expires_at")),
                              .version_floor = json_number(input, "version")};
    (void)snprintf(x->job, sizeof(x->job), "%s", json_text(job, "job_id"));
    (void)snprintf(x->token, sizeof(x->token), "%s", json_text(job, "lease_token"));
    handle(w, input, x->token, x->number, &t);
    x->result = strdup(t.at);
    work(w, x, input);
}

static void claimed(struct sim *w, struct call *c)
{
    size_t i;
    json_t *job;
    entities_state(w)->claims_open--;
    json_array_foreach (json_object_get(c->json, "jobs"), i, job)
        take_job(w, c, job);
}

void entity_claim(struct sim *w, struct place *p)
{
    char tenant[8], body[120];
    for (int i = 0; i < ENTITIES; i++) {
        if (entities_state(w)->entities[i].deleting)
            return;
    }
    entities_state(w)->claims_open++;
    tenant_name(tenant, entities_state(w)->entities[0].tenant);
    /* At the end a round takes long. */
    (void)snprintf(body, sizeof(body),
                   "{\"worker_id\":\"e\",\"queues\":[\"ents\"],\"max\":2,\"lease_ms\":%d}",
                   w->calm ? LEASE_MS_MAX : LEASE_MS);
    struct call_spec spec = {.place = p,
                             .method = "POST",
                             .target = "/api/v1/jobs/claim",
                             .tenant = tenant,
                             .body = body,
                             .done = claimed};
    (void)sim_send(w, &spec);
}
