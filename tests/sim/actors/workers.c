/* Workers: honest ones, and those that die, sleep past their lease, and answer late, twice or
 * wrongly. */
#include "sim/jobs/workers.h"
#include "sim/jobs/outcomes.h"

#include <stdlib.h>

enum { BATCH_MAX = 4, DRAIN_LEASE_MS = 20000, CHECKED_MAX = 60 };

struct workers {
    struct job_list list;
    int64_t names; /* of claims and their keys */
};

static struct workers *state(struct sim *w)
{
    return w->states[ACTOR_WORKERS_NUMBER];
}

struct job_list *workers_jobs(struct sim *w)
{
    return &state(w)->list;
}

/* --- results --- */

/* What a worker hands in: what it was given to do decides, and `variant` for one that changes its
 * mind. */
static json_t *output_of(const struct lease *l, int variant)
{
    json_t *output = json_pack("{s:s, s:I, s:i}", "job", l->job->id, "attempt",
                               (json_int_t)l->attempt, "variant", variant);
    assert(output != NULL);
    return output;
}

static json_t *error_of(bool retryable)
{
    return retryable ? json_pack("{s:s}", "code", "FAULT")
                     : json_pack("{s:s, s:b}", "code", "FATAL", "retryable", 0);
}

/* One member of a batch, or the body of a single result. */
static json_t *result_of(struct lease *l, enum job_verb verb, int variant, bool retryable)
{
    json_t *body = json_pack("{s:s}", "lease_token", l->token);
    json_t *output = NULL;
    if (verb == VERB_COMPLETE) {
        output = output_of(l, variant);
        (void)json_object_set_new(body, "output", output);
    } else if (verb == VERB_FAIL) {
        (void)json_object_set_new(body, "error", error_of(retryable));
    }
    lease_used(l, verb, output);
    return body;
}

static void answered(struct sim *w, struct call *c)
{
    struct lease *l = c->spec.ref;
    if (c->status == 0)
        return;
    json_t *body = json_loads(c->spec.body, 0, NULL);
    struct job_answer a = {.verb = (enum job_verb)c->spec.number,
                           .status = json_text(c->json, "status"),
                           .code = c->code,
                           .output = json_object_get(body, "output"),
                           .body = c->json};
    lease_answered(w, l, c, &a);
    json_decref(body);
}

static void send_result(struct sim *w, struct lease *l, enum job_verb verb, int variant)
{
    static const char *const VERBS[] = {"complete", "fail", "release", "heartbeat"};
    char tenant[8], target[80];
    json_t *json = result_of(l, verb, variant, lot_percent(&w->lot, 70));
    char *body = json_dumps(json, JSON_COMPACT);
    tenant_name(tenant, l->job->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s/%s", l->job->id, VERBS[verb]);
    struct call_spec spec = {.place = &w->places[l->job->place],
                             .method = "POST",
                             .target = target,
                             .tenant = lot_percent(&w->lot, 30) ? "*" : tenant,
                             .body = body,
                             .retries = w->calm || lot_percent(&w->lot, 80),
                             .doubles = verb != VERB_HEARTBEAT,
                             .done = answered,
                             .ref = l,
                             .number = verb};
    (void)sim_send(w, &spec);
    free(body);
    json_decref(json);
}

/* --- claims --- */

static enum job_verb some_verb(struct sim *w)
{
    int at = lot_below(&w->lot, 100);
    if (at < 70)
        return VERB_COMPLETE;
    return at < 84 ? VERB_FAIL : (at < 94 ? VERB_HEARTBEAT : VERB_RELEASE);
}

/* A worker does at once what it got. At the end all of it is done, well or badly. */
static void work_on(struct sim *w, const json_t *jobs)
{
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        struct seen_job *j = seen_job_of(w, json_text(job, "job_id"));
        enum job_verb verb = some_verb(w);
        if (w->calm && verb != VERB_FAIL)
            verb = VERB_COMPLETE;
        if (j != NULL)
            send_result(w, j->newest, verb, 0);
    }
}

static void claim_answered(struct sim *w, struct call *c)
{
    if (c->status != 200)
        return;
    const json_t *jobs = json_object_get(c->json, "jobs");
    jobs_claimed(w, c, jobs, c->spec.key != NULL);
    if (w->calm || lot_percent(&w->lot, 45))
        work_on(w, jobs);
}

static int64_t some_lease_ms(struct sim *w)
{
    switch (lot_below(&w->lot, 4)) {
    case 0:
        return lot_between(&w->lot, 100, 2000);
    case 1:
        return lot_between(&w->lot, 30000, 90000);
    default:
        return lot_between(&w->lot, 2000, 20000);
    }
}

static void put_claim(struct sim *w, struct buf *b, bool waits)
{
    static const char *const QUEUES[] = {"\"q0\"", "\"q0\"", "\"q1\"", "\"q0\",\"q1\"",
                                         "\"q1\",\"q0\""};
    static const int MOST[] = {1, 1, 2, 5, 20};
    buf_printf(b, "{\"worker_id\":\"w%lld\",\"queues\":[%s],\"max\":%d,\"lease_ms\":%lld",
               (long long)++state(w)->names, QUEUES[lot_below(&w->lot, (int)ARRAY_LEN(QUEUES))],
               MOST[lot_below(&w->lot, (int)ARRAY_LEN(MOST))], (long long)some_lease_ms(w));
    if (waits && lot_percent(&w->lot, 30))
        buf_printf(b, ",\"wait_ms\":%d", (int)lot_between(&w->lot, 1, 30000));
    buf_put_char(b, '}');
}

static void send_claim(struct sim *w, struct place *p, const char *tenant, const char *body)
{
    char key[40];
    bool keyed = !w->calm && lot_percent(&w->lot, 30);
    (void)snprintf(key, sizeof(key), "claim-%lld", (long long)state(w)->names);
    struct call_spec spec = {.place = p,
                             .method = "POST",
                             .target = "/api/v1/jobs/claim",
                             .tenant = tenant,
                             .key = keyed ? key : NULL,
                             .body = body,
                             .retries = keyed,
                             .doubles = keyed,
                             .done = claim_answered};
    (void)sim_send(w, &spec);
}

static void claim(struct sim *w)
{
    char tenant[8];
    struct buf body;
    tenant_name(tenant, lot_below(&w->lot, TENANTS));
    buf_init(&body, 300);
    put_claim(w, &body, true);
    send_claim(w, sim_any_place(w), lot_percent(&w->lot, 60) ? "*" : tenant, body.ptr);
    buf_release(&body);
}

static void one_claimed(struct sim *w, struct call *c)
{
    if (c->status != 200)
        return;
    json_t *jobs = json_pack("[O]", c->json);
    jobs_claimed(w, c, jobs, false);
    json_decref(jobs);
}

/* As a worker that was offered it on the bus. */
static void claim_one(struct sim *w)
{
    const struct lease *l = leases_any(w, false);
    char tenant[8], target[80], body[80];
    if (l == NULL)
        return;
    tenant_name(tenant, l->job->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s/claim", l->job->id);
    (void)snprintf(body, sizeof(body), "{\"worker_id\":\"one\",\"lease_ms\":%lld}",
                   (long long)some_lease_ms(w));
    struct call_spec spec = {.place = &w->places[l->job->place],
                             .method = "POST",
                             .target = target,
                             .tenant = tenant,
                             .body = body,
                             .done = one_claimed};
    (void)sim_send(w, &spec);
}

/* --- workers as they should be --- */

static void work(struct sim *w)
{
    struct lease *l = leases_any(w, true);
    if (l != NULL)
        send_result(w, l, some_verb(w), 0);
}

/* --- batches --- */

static void batch_answered(struct sim *w, struct call *c)
{
    if (c->status != 200)
        return;
    json_t *body = json_loads(c->spec.body, 0, NULL);
    const json_t *items = json_object_get(body, "items");
    const json_t *results = json_object_get(c->json, "results");
    sim_check(w, 3, json_array_size(results) == json_array_size(items),
              "a batch of %d results gets %d answers", (int)json_array_size(items),
              (int)json_array_size(results));
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        const json_t *result = json_array_get(results, i);
        bool fails = json_object_get(item, "error") != NULL;
        struct job_answer a = {.verb = fails ? VERB_FAIL : VERB_COMPLETE,
                               .status = json_text(result, "status"),
                               .code = json_text(result, "code"),
                               .output = json_object_get(item, "output"),
                               .body = result};
        struct lease *l = lease_find(w, json_text(item, "job_id"), json_text(item, "lease_token"));
        lease_answered(w, l, c, &a);
        sim_cover(w, "lease", "in a batch");
    }
    json_decref(body);
    jobs_claimed(w, c, json_object_get(c->json, "jobs"), c->tries > 1);
}

static json_t *some_items(struct sim *w, int *ret_place)
{
    json_t *items = json_array();
    *ret_place = -1;
    for (int i = 0; i < BATCH_MAX; i++) {
        struct lease *l = leases_any(w, !sim_on(w, ON_WORKERS) || lot_percent(&w->lot, 70));
        if (l == NULL || (*ret_place >= 0 && l->job->place != *ret_place))
            continue;
        *ret_place = l->job->place;
        json_t *item = result_of(l, lot_percent(&w->lot, 75) ? VERB_COMPLETE : VERB_FAIL,
                                 lot_percent(&w->lot, 10), lot_percent(&w->lot, 70));
        (void)json_object_set_new(item, "job_id", json_string(l->job->id));
        (void)json_array_append_new(items, item);
    }
    return items;
}

static void work_in_batch(struct sim *w)
{
    int place;
    json_t *items = some_items(w, &place);
    if (place < 0) {
        json_decref(items);
        return;
    }
    struct buf body;
    char *text = json_dumps(items, JSON_COMPACT);
    buf_init(&body, 4000);
    buf_printf(&body, "{\"items\":%s", text);
    if (lot_percent(&w->lot, 60)) {
        buf_put(&body, STR(",\"claim\":"));
        put_claim(w, &body, false);
    }
    buf_put_char(&body, '}');
    assert(buf_ok(&body));
    struct call_spec spec = {.place = &w->places[place],
                             .method = "POST",
                             .target = "/api/v1/jobs:complete",
                             .tenant = "*",
                             .body = body.ptr,
                             .retries = lot_percent(&w->lot, 80),
                             .doubles = true,
                             .done = batch_answered};
    (void)sim_send(w, &spec);
    buf_release(&body);
    free(text);
    json_decref(items);
}

/* --- workers as they are --- */

/* Under whatever lease it once had. */
static void work_late(struct sim *w)
{
    struct lease *l = leases_any(w, false);
    if (l != NULL)
        send_result(w, l, some_verb(w), lot_percent(&w->lot, 50));
}

static void work_twice(struct sim *w)
{
    struct lease *l = leases_any(w, true);
    if (l == NULL)
        return;
    send_result(w, l, VERB_COMPLETE, 0);
    send_result(w, l, lot_percent(&w->lot, 70) ? VERB_COMPLETE : some_verb(w),
                lot_percent(&w->lot, 50));
}

/* The connection of a worker that waits for a job breaks. */
static void hang_up(struct sim *w)
{
    struct call *found = NULL;
    int count = 0;
    for (struct call *c = w->calls; c != NULL; c = c->next) {
        if (c->spec.done == claim_answered && c->state == CALL_AT_SERVER && c->spec.key == NULL &&
            lot_below(&w->lot, ++count) == 0)
            found = c;
    }
    if (found != NULL)
        sim_hang_up(w, found);
}

/* --- the actor --- */

static bool finish(struct sim *w)
{
    for (int i = 0; i < w->place_count; i++) {
        char body[160];
        (void)snprintf(body, sizeof(body),
                       "{\"worker_id\":\"last\",\"queues\":[\"q0\",\"q1\",\"default\"],\"max\":100,"
                       "\"lease_ms\":%d}",
                       DRAIN_LEASE_MS);
        send_claim(w, &w->places[i], "*", body);
        place_settle(w, &w->places[i]);
    }
    return false;
}

static void audit(struct sim *w)
{
    const struct seen_run *r = runs_any(w, 0);
    if (r != NULL)
        outcome_glance(w, r);
}

static void last(struct sim *w)
{
    int count = 0;
    for (const struct seen_run *r = runs_first(w); r != NULL && count < CHECKED_MAX; r = r->next) {
        bool worked = r->workflow[0] == 'g' || r->workflow[0] == 'c';
        if (r->removed || (!worked && !lot_percent(&w->lot, 25))) /* little happens in others */
            continue;
        outcome_check(w, r);
        count++;
    }
}

static void begin(struct sim *w)
{
    struct workers *s = calloc(1, sizeof(*s));
    assert(s != NULL);
    w->states[ACTOR_WORKERS_NUMBER] = s;
}

static void release(struct sim *w)
{
    struct workers *s = state(w);
    while (s->list.leases != NULL) {
        struct lease *l = s->list.leases;
        s->list.leases = l->next;
        free(l);
    }
    while (s->list.jobs != NULL) {
        struct seen_job *j = s->list.jobs;
        s->list.jobs = j->next;
        json_decref(j->sent);
        json_decref(j->output);
        free(j);
    }
    free(s);
    w->states[ACTOR_WORKERS_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"a worker claims jobs", 28, 0, claim},
    {"a worker answers", 24, 0, work},
    {"a worker answers a batch", 6, 0, work_in_batch},
    {"a worker claims one job", 3, 0, claim_one},
    {"a worker answers late", 8, NEEDS(ON_WORKERS), work_late},
    {"a worker answers twice", 5, NEEDS(ON_WORKERS), work_twice},
    {"a waiting worker hangs up", 3, NEEDS(ON_WORKERS), hang_up},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_WORKERS = {.name = "workers",
                                    .actions = ACTIONS,
                                    .begin = begin,
                                    .audit = audit,
                                    .finish = finish,
                                    .last = last,
                                    .free = release};
