/* Durable functions: workers that store what they have done, suspend, die, sleep past their lease
 * and come back, and the people and signals that they wait for. */
#include "sim/jobs/functions.h"

#include "sim/people.h"

#include <stdlib.h>

#define QUEUE "functions"
#define WORKFLOW(id, more)                                                         \
    {                                                                              \
        id, "{\"steps\":[{\"name\":\"f\",\"type\":\"task\",\"handler\":\"h\","     \
            "\"queue\":\"" QUEUE "\",\"retry\":{\"max_attempts\":1000}" more "}]}" \
    }

enum {
    RUNS_MAX = 12,
    FINISH_LEASE_MS = 60000,
    LEASE_MS = 20000,
    SHORT_LEASE_MS = 500,
    SLEEP_MS_MAX = 90 * 1000,
};

static const struct {
    const char *id, *body;
} WORKFLOWS[] = {
    WORKFLOW("f0", ""),
    WORKFLOW("f1", ",\"for_each\":[1,2,3],\"max_parallel\":2"),
};

struct functions *functions_state(struct sim *w)
{
    return w->states[ACTOR_FUNCTIONS_NUMBER];
}

static struct call_spec post(struct place *p, const char *target, const char *body)
{
    return (struct call_spec){
        .place = p, .method = "POST", .target = target, .tenant = FUNCTIONS_TENANT, .body = body};
}

/* --- runs --- */

static void started(struct sim *w, struct call *c)
{
    sim_check(w, 1, call_in_doubt(c) || c->status == 200, "a start is answered %d %s", c->status,
              c->code);
}

static void start(struct sim *w)
{
    char target[64], key[32];
    if (functions_state(w)->runs++ >= RUNS_MAX)
        return;
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/%s/runs",
                   WORKFLOWS[lot_below(&w->lot, (int)ARRAY_LEN(WORKFLOWS))].id);
    (void)snprintf(key, sizeof(key), "function-%lld", (long long)w->clock);
    struct call_spec spec = post(sim_any_place(w), target, "{}");
    spec.key = key;
    spec.retries = spec.doubles = true;
    spec.done = started;
    (void)sim_send(w, &spec);
}

static struct function *any_function(struct sim *w)
{
    struct function *found = NULL;
    int count = 0;
    for (struct function *f = functions_state(w)->first; f != NULL; f = f->next) {
        if (lot_below(&w->lot, ++count) == 0)
            found = f;
    }
    return found;
}

static void control(struct sim *w, const char *verb)
{
    const struct function *f = any_function(w);
    char target[80];
    if (f == NULL)
        return;
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/%s", f->run, verb);
    struct call_spec spec = post(&w->places[f->place], target, "{}");
    spec.retries = true;
    (void)sim_send(w, &spec);
}

static void cancel(struct sim *w)
{
    control(w, "cancel");
}

static void pause_run(struct sim *w)
{
    control(w, "pause");
}

static void resume_run(struct sim *w)
{
    control(w, "resume");
}

/* --- signals and decisions --- */

static void signalled(struct sim *w, struct call *c)
{
    if (c->status == 200)
        functions_state(w)->marks[c->spec.number].acknowledged = c->answered;
}

static void send_signal(struct sim *w, const struct function *f)
{
    char target[80], body[80];
    int64_t mark = functions_mark(w, NULL, 0, f->run);
    if (mark == NOTHING)
        return;
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/signals", f->run);
    (void)snprintf(body, sizeof(body),
                   "{\"name\":\"go\",\"payload\":{\"m\":%lld},\"dedup_key\":\"k%lld\"}",
                   (long long)mark, (long long)mark);
    struct call_spec spec = post(&w->places[f->place], target, body);
    spec.retries = spec.doubles = true;
    spec.done = signalled;
    spec.number = mark;
    (void)sim_send(w, &spec);
}

static void signal_function(struct sim *w)
{
    const struct function *f = any_function(w);
    if (f != NULL)
        send_signal(w, f);
}

static void decided(struct sim *w, struct call *c)
{
    struct question *q = c->spec.ref;
    sim_check(w, 4,
              call_in_doubt(c) || c->status == 200 || strcmp(c->code, "APPROVAL_CONFLICT") == 0 ||
                  strcmp(c->code, "APPROVAL_EXPIRED") == 0 ||
                  strcmp(c->code, "NOT_AWAITING_APPROVAL") == 0,
              "a decision on question %s is answered %d %s", q->id, c->status, c->code);
    if (c->status == 200)
        question_decided(w, q, c->spec.number);
}

static void decide_question(struct sim *w, struct question *q)
{
    char target[80];
    int64_t decision = lot_percent(&w->lot, 60) ? 1 : 2;
    q->said[decision] = true;
    (void)snprintf(target, sizeof(target), "/api/v1/approvals/%s/%s", q->id,
                   decision == 1 ? "approve" : "reject");
    struct call_spec spec = post(&w->places[q->place], target, "{}");
    spec.actor = PEOPLE[any_person(w)];
    spec.retries = spec.doubles = true;
    spec.done = decided;
    spec.ref = q;
    spec.number = decision;
    (void)sim_send(w, &spec);
}

/* Old ones too: a decision that is repeated must not decide what was asked since. */
static void decide(struct sim *w)
{
    struct question *found = NULL;
    int count = 0;
    for (struct question *q = functions_state(w)->questions; q != NULL; q = q->next) {
        if (lot_below(&w->lot, ++count) == 0)
            found = q;
    }
    if (found != NULL)
        decide_question(w, found);
}

/* --- workers --- */

static void go_on(struct sim *w, struct function_lease *l);

/* `number`: the step, and what was sent as its value. */
enum { NUMBER_STEPS = 8 };

/* True: the worker goes on. */
static bool was_done(struct sim *w, struct function_lease *l, const struct call *c)
{
    l->busy = false;
    sim_check(w, 3, call_in_doubt(c) || c->status == 200 || strcmp(c->code, "LEASE_LOST") == 0,
              "%s is answered %d %s", c->spec.target, c->status, c->code);
    if (strcmp(c->code, "LEASE_LOST") == 0)
        sim_cover(w, "function", "LEASE_LOST");
    if (c->status == 409 && l->ended == 0 && w->calm)
        l->ended = c->answered;
    return c->status == 200;
}

static void stored(struct sim *w, struct call *c)
{
    struct function_lease *l = c->spec.ref;
    if (!was_done(w, l, c))
        return;
    function_stored(w, l, c, (int)(c->spec.number % NUMBER_STEPS), c->spec.number / NUMBER_STEPS);
    if (w->calm || lot_percent(&w->lot, 40))
        go_on(w, l);
}

static void suspended(struct sim *w, struct call *c)
{
    struct function_lease *l = c->spec.ref;
    if (was_done(w, l, c))
        function_suspended(w, l, c, (int)c->spec.number);
}

static void completed(struct sim *w, struct call *c)
{
    struct function_lease *l = c->spec.ref;
    if (was_done(w, l, c))
        function_completed(w, l, c);
}

static void send(struct sim *w, struct function_lease *l, const char *verb, const char *members,
                 void (*done)(struct sim *w, struct call *c), int64_t number)
{
    char target[96], body[400];
    (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s/%s", l->f->id, verb);
    (void)snprintf(body, sizeof(body), "{\"lease_token\":\"%s\"%s}", l->token, members);
    struct call_spec spec = post(&w->places[l->f->place], target, body);
    spec.retries = w->calm || lot_percent(&w->lot, 60);
    spec.doubles = true;
    spec.done = done;
    spec.ref = l;
    spec.number = number;
    l->busy = true;
    (void)sim_send(w, &spec);
}

static void send_checkpoint(struct sim *w, struct function_lease *l, int step)
{
    char members[80];
    if (l->tried[step] == NOTHING)
        l->tried[step] = l->resumed == step ? l->brought : functions_mark(w, l->f, step, "");
    if (l->tried[step] == NOTHING)
        return;
    (void)snprintf(members, sizeof(members), ",\"name\":\"s%d\",\"output\":{\"m\":%lld}", step,
                   (long long)l->tried[step]);
    send(w, l, "checkpoints", members, stored, l->tried[step] * NUMBER_STEPS + step);
}

static void put_time(char out[static 40], int64_t ms)
{
    struct buf text;
    buf_init(&text, 40);
    buf_put_time(&text, ms);
    (void)snprintf(out, 40, "%.*s", STR_ARG(buf_str(&text)));
    buf_release(&text);
}

static void send_suspend(struct sim *w, struct function_lease *l, int step)
{
    char members[200], at[40];
    int64_t until =
        place_wall_ms(w, &w->places[l->f->place]) + lot_between(&w->lot, -1000, SLEEP_MS_MAX);
    put_time(at, until);
    switch (function_step_kind(l->f, step)) {
    case STEP_SLEEPS:
        l->f->until_ms[step] = MIN(l->f->until_ms[step], until);
        (void)snprintf(members, sizeof(members), ",\"name\":\"s%d\",\"until\":\"%s\"", step, at);
        break;
    case STEP_HEARS:
        l->f->heard |= 1u << step;
        (void)snprintf(members, sizeof(members), ",\"name\":\"s%d\",\"signal\":\"go\"", step);
        break;
    default:
        (void)snprintf(members, sizeof(members),
                       ",\"name\":\"s%d\",\"approval\":{\"prompt\":\"p\",\"content\":%d%s}", step,
                       step, lot_percent(&w->lot, 30) ? ",\"expires_s\":60" : "");
    }
    send(w, l, "suspend", members, suspended, step);
}

static void send_complete(struct sim *w, struct function_lease *l)
{
    struct buf members;
    buf_init(&members, 300);
    buf_put(&members, STR(",\"output\":["));
    for (int i = 0; i < FUNCTION_STEPS; i++)
        buf_printf(&members, "%s%lld", i > 0 ? "," : "", (long long)l->values[i]);
    buf_put_char(&members, ']');
    send(w, l, "complete", members.ptr, completed, 0);
    buf_release(&members);
}

/* Does what comes next, as far as the worker knows. */
static void go_on(struct sim *w, struct function_lease *l)
{
    int step = 0;
    while (step < FUNCTION_STEPS && l->values[step] != NOTHING)
        step++;
    if (step == FUNCTION_STEPS)
        send_complete(w, l);
    else if (function_step_kind(l->f, step) == STEP_WORKS || l->resumed == step)
        send_checkpoint(w, l, step);
    else
        send_suspend(w, l, step);
}

static void claimed(struct sim *w, struct call *c)
{
    size_t i;
    json_t *job;
    if (c->status != 200)
        return;
    json_array_foreach (json_object_get(c->json, "jobs"), i, job) {
        struct function_lease *l = function_claimed(w, c, job);
        if (w->calm || lot_percent(&w->lot, 50))
            go_on(w, l);
    }
}

static void send_claim(struct sim *w, struct place *p, int64_t lease_ms)
{
    char body[160];
    (void)snprintf(
        body, sizeof(body),
        "{\"worker_id\":\"f%lld\",\"queues\":[\"" QUEUE "\"],\"max\":%d,\"lease_ms\":%lld}",
        (long long)w->clock, w->calm ? 100 : 1 + lot_below(&w->lot, 3), (long long)lease_ms);
    struct call_spec spec = post(p, "/api/v1/jobs/claim", body);
    spec.done = claimed;
    (void)sim_send(w, &spec);
}

static void claim(struct sim *w)
{
    bool shortly = lot_percent(&w->lot, 40);
    send_claim(w, sim_any_place(w),
               shortly ? lot_between(&w->lot, 100, 3000) : lot_between(&w->lot, 10000, 60000));
}

/* One by lot; `newest`: that may still be valid. */
static struct function_lease *any_lease(struct sim *w, bool newest)
{
    struct function_lease *found = NULL;
    int count = 0;
    for (struct function *f = functions_state(w)->first; f != NULL; f = f->next) {
        for (struct function_lease *l = f->newest; l != NULL; l = l->next) {
            bool fits = !l->busy && (!newest || (l == f->newest && l->ended == 0));
            if (fits && lot_below(&w->lot, ++count) == 0)
                found = l;
        }
    }
    return found;
}

/* A function that uses a name for two things: the first result stays. */
static void store_again(struct sim *w)
{
    struct function_lease *l = any_lease(w, true);
    char members[80];
    if (l == NULL || l->values[0] == NOTHING)
        return;
    int64_t mark = functions_mark(w, l->f, 0, "");
    (void)snprintf(members, sizeof(members), ",\"name\":\"s0\",\"output\":{\"m\":%lld}",
                   (long long)mark);
    if (mark != NOTHING)
        send(w, l, "checkpoints", members, stored, mark * NUMBER_STEPS);
}

/* The next function, at once; NULL: there is none. */
static struct function_lease *claim_now(struct sim *w, struct place *p, int lease_ms)
{
    char body[120];
    (void)snprintf(body, sizeof(body),
                   "{\"worker_id\":\"now\",\"queues\":[\"" QUEUE "\"],\"lease_ms\":%d}", lease_ms);
    struct call *c = sim_ask(w, p, FUNCTIONS_TENANT, "POST", "/api/v1/jobs/claim", body);
    const json_t *job = c != NULL ? json_array_get(json_object_get(c->json, "jobs"), 0) : NULL;
    struct function_lease *l = job != NULL ? function_claimed(w, c, job) : NULL;
    call_free(c);
    return l;
}

/* The same; one begins where there is none. */
static struct function_lease *claim_or_start(struct sim *w, struct place *p)
{
    struct function_lease *l = claim_now(w, p, SHORT_LEASE_MS);
    if (l != NULL || functions_state(w)->runs++ >= RUNS_MAX)
        return l;
    call_free(sim_ask(w, p, FUNCTIONS_TENANT, "POST", "/api/v1/workflows/f0/runs", "{}"));
    return claim_now(w, p, SHORT_LEASE_MS);
}

/* A worker does a part or two, sleeps past its lease, and goes on when another has the job. */
static void outlive_lease(struct sim *w)
{
    struct place *p = sim_any_place(w);
    struct function_lease *l = claim_or_start(w, p);
    if (l == NULL)
        return;
    for (int parts = lot_below(&w->lot, 3); parts > 0 && !l->busy && l->ended == 0; parts--) {
        go_on(w, l);
        place_settle(w, p);
        sim_calls_turn(w);
    }
    sim_pass_ms(w, SHORT_LEASE_MS + 100);
    struct function_lease *second = claim_now(w, p, LEASE_MS);
    if (second != NULL && lot_percent(&w->lot, 50))
        go_on(w, second);
    if (!l->busy)
        go_on(w, l);
}

static void work(struct sim *w)
{
    struct function_lease *l = any_lease(w, true);
    if (l != NULL)
        go_on(w, l);
}

/* A worker that does not know that its lease is gone. */
static void work_late(struct sim *w)
{
    struct function_lease *l = any_lease(w, false);
    if (l != NULL)
        go_on(w, l);
}

/* --- the end --- */

static void decide_all(struct sim *w, struct place *p)
{
    struct call *c =
        people_ask(w, p, FUNCTIONS_TENANT, "/api/v1/approvals?status=pending&limit=200");
    size_t i;
    json_t *approval;
    json_array_foreach (c != NULL ? json_object_get(c->json, "items") : NULL, i, approval)
        decide_question(w, functions_question(w, json_text(approval, "job_id"), p->number));
    call_free(c);
}

/* Whatever a run waits for comes. True: it is not over. */
static bool help_run(struct sim *w, const struct place *p, const json_t *run)
{
    struct function any = {.place = p->number};
    if (run_status_is_over(json_text(run, "status")))
        return false;
    (void)snprintf(any.run, sizeof(any.run), "%s", json_text(run, "id"));
    if (strcmp(json_text(run, "status"), "paused") == 0) {
        char target[80];
        (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/resume", any.run);
        struct call_spec spec = post(&w->places[p->number], target, "{}");
        spec.retries = true;
        (void)sim_send(w, &spec);
    } else {
        send_signal(w, &any);
    }
    return true;
}

static bool finish(struct sim *w)
{
    bool waits = false;
    for (int i = 0; i < w->place_count; i++) {
        struct place *p = &w->places[i];
        struct call *c = people_ask(w, p, FUNCTIONS_TENANT, "/api/v1/runs?limit=200");
        size_t n;
        json_t *run;
        json_array_foreach (c != NULL ? json_object_get(c->json, "items") : NULL, n, run)
            waits |= help_run(w, p, run);
        call_free(c);
        decide_all(w, p);
        send_claim(w, p, FINISH_LEASE_MS);
        place_settle(w, p);
    }
    return waits;
}

/* Each name is in the timeline once. */
static void check_timeline(struct sim *w, const struct function *f)
{
    char target[96];
    int stored_count[FUNCTION_STEPS] = {0};
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/events?limit=200", f->run);
    struct call *c = people_ask(w, &w->places[f->place], FUNCTIONS_TENANT, target);
    size_t i;
    json_t *event;
    json_array_foreach (c != NULL ? json_object_get(c->json, "items") : NULL, i, event) {
        const json_t *data = json_object_get(event, "data");
        sim_cover(w, "event", json_text(event, "type"));
        if (strcmp(json_text(event, "type"), "job.checkpointed") == 0 &&
            strcmp(json_text(data, "job_id"), f->id) == 0)
            stored_count[json_text(json_object_get(data, "checkpoint"), "name")[1] - '0']++;
    }
    for (int s = 0; s < FUNCTION_STEPS; s++)
        sim_check(w, 3, stored_count[s] <= 1, "s%d of function %s was stored %d times", s, f->id,
                  stored_count[s]);
    call_free(c);
}

static void last(struct sim *w)
{
    for (const struct function *f = functions_state(w)->first; f != NULL; f = f->next) {
        char target[80];
        (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s", f->id);
        struct call *c = people_ask(w, &w->places[f->place], FUNCTIONS_TENANT, target);
        if (c == NULL)
            continue;
        bool succeeded = strcmp(json_text(c->json, "state"), "succeeded") == 0;
        sim_check(w, 6, succeeded || strcmp(json_text(c->json, "state"), "cancelled") == 0,
                  "function %s is %s in the end", f->id, json_text(c->json, "state"));
        function_check_shown(w, f, c->json, succeeded);
        check_timeline(w, f);
        call_free(c);
    }
}

/* --- the actor --- */

static void put(struct sim *w, struct place *p, const char *target, const char *body)
{
    struct call *c = sim_ask(w, p, FUNCTIONS_TENANT, "PUT", target, body);
    assert(c != NULL && c->status == 200);
    call_free(c);
}

static void warm(struct sim *w, struct place *p)
{
    put(w, p, "/api/v1/tenants/" FUNCTIONS_TENANT, "{}");
    for (size_t i = 0; i < ARRAY_LEN(WORKFLOWS); i++) {
        char target[40];
        (void)snprintf(target, sizeof(target), "/api/v1/workflows/%s", WORKFLOWS[i].id);
        put(w, p, target, WORKFLOWS[i].body);
    }
}

static void begin(struct sim *w)
{
    struct functions *s = calloc(1, sizeof(*s));
    assert(s != NULL);
    w->states[ACTOR_FUNCTIONS_NUMBER] = s;
}

static void release_function(struct function *f)
{
    while (f->newest != NULL) {
        struct function_lease *l = f->newest;
        f->newest = l->next;
        free(l);
    }
    free(f);
}

static void release(struct sim *w)
{
    struct functions *s = functions_state(w);
    while (s->first != NULL) {
        struct function *f = s->first;
        s->first = f->next;
        release_function(f);
    }
    while (s->questions != NULL) {
        struct question *q = s->questions;
        s->questions = q->next;
        free(q);
    }
    free(s);
    w->states[ACTOR_FUNCTIONS_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"a durable function begins", 4, NEEDS(ON_FUNCTIONS), start},
    {"a worker claims functions", 10, NEEDS(ON_FUNCTIONS), claim},
    {"a function goes on", 20, NEEDS(ON_FUNCTIONS), work},
    {"a function goes on late", 5, NEEDS(ON_FUNCTIONS) | NEEDS(ON_WORKERS), work_late},
    {"a function stores a name twice", 5, NEEDS(ON_FUNCTIONS), store_again},
    {"a function outlives its lease", 10, NEEDS(ON_FUNCTIONS) | NEEDS(ON_WORKERS), outlive_lease},
    {"a function is signalled", 4, NEEDS(ON_FUNCTIONS), signal_function},
    {"a function's question is decided", 4, NEEDS(ON_FUNCTIONS), decide},
    {"functions are cancelled", 1, NEEDS(ON_FUNCTIONS) | NEEDS(ON_CONTROL), cancel},
    {"functions are paused", 1, NEEDS(ON_FUNCTIONS) | NEEDS(ON_CONTROL), pause_run},
    {"functions are resumed", 2, NEEDS(ON_FUNCTIONS) | NEEDS(ON_CONTROL), resume_run},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_FUNCTIONS = {.name = "functions",
                                      .actions = ACTIONS,
                                      .warm = warm,
                                      .begin = begin,
                                      .finish = finish,
                                      .last = last,
                                      .free = release};
