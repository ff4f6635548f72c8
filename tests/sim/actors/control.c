/* Operators of runs: cancel, pause, resume, retry, rerun, in bulk, and dead letters. */
#include "sim/runs.h"

#include <stdlib.h>

enum control { CANCEL, PAUSE, RESUME, RETRY, CONTROL_COUNT };

static const char *const VERBS[CONTROL_COUNT] = {"cancel", "pause", "resume", "retry"};

struct controls {
    int64_t names; /* of idempotency keys */
};

static struct controls *state(struct sim *w)
{
    return w->states[ACTOR_CONTROL_NUMBER];
}

static bool status_is(const json_t *run, const char *status)
{
    return strcmp(json_text(run, "status"), status) == 0;
}

/* It may run again from now on. */
static void note(struct sim *w, struct seen_run *r, enum control what)
{
    if (what == RESUME || what == RETRY)
        r->moved = w->clock + 1;
}

/* --- one run --- */

static void check_done(struct sim *w, const struct call *c, const struct seen_run *r,
                       enum control what)
{
    sim_check(w, 0, what != CANCEL || status_is(c->json, "cancelled"),
              "run %s was cancelled and is %s", r->id, json_text(c->json, "status"));
    sim_check(w, 0, what != PAUSE || status_is(c->json, "paused"), "run %s was paused and is %s",
              r->id, json_text(c->json, "status"));
    sim_check(w, 0, what != RESUME || !status_is(c->json, "paused"),
              "run %s was resumed and is paused", r->id);
    sim_check(w, 0,
              what != RETRY || !run_status_is_over(json_text(c->json, "status")) ||
                  json_number(c->json, "version") > c->spec.number / CONTROL_COUNT,
              "run %s was retried and has not changed", r->id);
}

static void check_refused(struct sim *w, const struct call *c, struct seen_run *r)
{
    if (strcmp(c->code, "RUN_IS_OVER") == 0)
        r->said_over = MAX(r->said_over, c->answered);
    sim_check(w, 0, strcmp(c->code, "CONCURRENCY_ERROR") != 0 || c->spec.if_match != NULL,
              "run %s has moved on, but no version was named", r->id);
    if (strcmp(c->code, "CONCURRENCY_ERROR") == 0)
        sim_check(w, 0, json_number(c->json, "actual") != json_number(c->json, "expected"),
                  "run %s has moved on to the version that was named", r->id);
}

static void controlled(struct sim *w, struct call *c)
{
    struct seen_run *r = c->spec.ref;
    enum control what = (enum control)(c->spec.number % CONTROL_COUNT);
    if (c->status == 0)
        return;
    if (c->status == 200) {
        sim_cover(w, "control", VERBS[what]);
        if (c->replayed)
            return;
        check_done(w, c, r, what);
        (void)runs_observe(w, c, c->json);
    } else {
        check_refused(w, c, r);
    }
}

static void send_control(struct sim *w, struct seen_run *r, enum control what)
{
    char tenant[8], target[80], key[40], version[24];
    tenant_name(tenant, r->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/%s", r->id, VERBS[what]);
    (void)snprintf(key, sizeof(key), "control-%lld", (long long)++state(w)->names);
    (void)snprintf(version, sizeof(version), "\"%lld\"",
                   (long long)(r->version - lot_below(&w->lot, 2)));
    bool keyed = lot_percent(&w->lot, 50);
    struct call_spec spec = {.place = &w->places[r->place],
                             .method = "POST",
                             .target = target,
                             .tenant = tenant,
                             .key = keyed ? key : NULL,
                             .if_match = !w->calm && lot_percent(&w->lot, 20) ? version : NULL,
                             .retries = w->calm || lot_percent(&w->lot, 70),
                             .doubles = keyed,
                             .done = controlled,
                             .ref = r,
                             .number = r->version * CONTROL_COUNT + what};
    note(w, r, what);
    (void)sim_send(w, &spec);
}

/* Runs that end by themselves, of workflows that nobody else counts on. */
static bool is_free(const char *workflow)
{
    return (workflow[0] == 'g' || workflow[0] == 'w') && workflow[2] == '\0';
}

static void control_any(struct sim *w, enum control what)
{
    struct seen_run *r = runs_any(w, lot_percent(&w->lot, 85) ? what == RETRY : -1);
    if (r != NULL && (is_free(r->workflow) || strncmp(r->workflow, "child", 5) == 0))
        send_control(w, r, what);
}

static void cancel(struct sim *w)
{
    control_any(w, CANCEL);
}

static void pause_run(struct sim *w)
{
    control_any(w, PAUSE);
}

static void resume(struct sim *w)
{
    control_any(w, RESUME);
}

static void retry(struct sim *w)
{
    control_any(w, RETRY);
}

/* --- again from the beginning, or from a step --- */

static void rerun_made(struct sim *w, struct call *c)
{
    const struct seen_run *r = c->spec.ref;
    if (c->status != 200)
        return;
    const json_t *run = json_object_get(c->json, "run");
    sim_check(w, 0, strcmp(json_text(run, "rerun_of"), r->id) == 0,
              "a rerun of %s says it is of %s", r->id, json_text(run, "rerun_of"));
    sim_check(w, 1, strcmp(json_text(run, "id"), r->id) != 0, "a rerun of %s is the same run",
              r->id);
    sim_cover(w, "control", "rerun");
    if (!c->replayed)
        (void)runs_observe(w, c, run);
}

static void rerun(struct sim *w)
{
    struct seen_run *r = runs_any(w, lot_percent(&w->lot, 90));
    char tenant[8], target[80], key[40];
    if (r == NULL || !is_free(r->workflow))
        return;
    tenant_name(tenant, r->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/rerun", r->id);
    (void)snprintf(key, sizeof(key), "rerun-%lld", (long long)++state(w)->names);
    struct call_spec spec = {.place = &w->places[r->place],
                             .method = "POST",
                             .target = target,
                             .tenant = tenant,
                             .key = key,
                             .body = lot_percent(&w->lot, 50) ? "{\"from_step\":\"s1\"}" : "{}",
                             .retries = true,
                             .doubles = true,
                             .done = rerun_made,
                             .ref = r};
    (void)sim_send(w, &spec);
}

/* --- many runs at once --- */

static void bulk_done(struct sim *w, struct call *c)
{
    if (c->status != 200)
        return;
    int64_t sum = json_number(c->json, "changed") + json_number(c->json, "unchanged") +
                  (int64_t)json_array_size(json_object_get(c->json, "refused"));
    bool dry = json_is_true(json_object_get(c->json, "dry_run"));
    sim_check(w, 0, sum == (dry ? 0 : json_number(c->json, "matched")),
              "a bulk change of %lld runs says %lld", (long long)json_number(c->json, "matched"),
              (long long)sum);
    sim_cover(w, "control", "bulk");
}

static void bulk(struct sim *w)
{
    static const char *const FILTERS[] = {"{\"workflow_id\":\"g0\"}",
                                          "{\"workflow_id\":\"g1\",\"status\":\"queued\"}",
                                          "{\"workflow_id\":\"g2\",\"status\":\"failed\"}"};
    char tenant[8], body[160];
    enum control what = (enum control)lot_below(&w->lot, CONTROL_COUNT);
    tenant_name(tenant, lot_below(&w->lot, TENANTS));
    (void)snprintf(body, sizeof(body), "{\"action\":\"%s\",\"filter\":%s%s}", VERBS[what],
                   FILTERS[lot_below(&w->lot, (int)ARRAY_LEN(FILTERS))],
                   lot_percent(&w->lot, 20) ? ",\"dry_run\":true" : "");
    struct call_spec spec = {.place = sim_any_place(w),
                             .method = "POST",
                             .target = "/api/v1/runs:bulk",
                             .tenant = tenant,
                             .body = body,
                             .done = bulk_done};
    for (struct seen_run *r = runs_first(w); r != NULL; r = r->next)
        note(w, r, what);
    (void)sim_send(w, &spec);
}

/* --- dead letters --- */

static void letter_done(struct sim *w, struct call *c)
{
    if (c->status == 200)
        sim_cover(w, "control",
                  c->spec.method[0] == 'D' ? "dead letter dropped" : "dead letter retried");
}

static void letters_read(struct sim *w, struct call *c)
{
    const json_t *letters = json_object_get(c->json, "items");
    size_t count = c->status == 200 ? json_array_size(letters) : 0;
    if (count == 0)
        return;
    const json_t *letter = json_array_get(letters, (size_t)lot_below(&w->lot, (int)count));
    struct seen_run *r = seen_run_of(w, json_text(letter, "run_id"));
    bool drops = lot_percent(&w->lot, 30);
    if (!is_free(json_text(letter, "workflow_id")))
        return;
    char target[96];
    (void)snprintf(target, sizeof(target), "/api/v1/dead-letters/%s%s", json_text(letter, "job_id"),
                   drops ? "" : "/retry");
    struct call_spec spec = {.place = c->spec.place,
                             .method = drops ? "DELETE" : "POST",
                             .target = target,
                             .tenant = c->spec.tenant,
                             .retries = true,
                             .done = letter_done};
    if (r != NULL && !drops)
        note(w, r, RETRY);
    (void)sim_send(w, &spec);
}

static void read_letters(struct sim *w)
{
    char tenant[8];
    tenant_name(tenant, lot_below(&w->lot, TENANTS));
    struct call_spec spec = {.place = sim_any_place(w),
                             .method = "GET",
                             .target = "/api/v1/dead-letters",
                             .tenant = tenant,
                             .done = letters_read};
    (void)sim_send(w, &spec);
}

/* --- the actor --- */

/* Paused runs go on. */
static bool finish(struct sim *w)
{
    for (struct seen_run *r = runs_first(w); r != NULL; r = r->next) {
        if (strcmp(r->status, "paused") == 0 && !r->removed)
            send_control(w, r, RESUME);
    }
    return false;
}

static void begin(struct sim *w)
{
    w->states[ACTOR_CONTROL_NUMBER] = calloc(1, sizeof(struct controls));
    assert(state(w) != NULL);
}

static void release(struct sim *w)
{
    free(state(w));
    w->states[ACTOR_CONTROL_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"an operator cancels a run", 5, NEEDS(ON_CONTROL), cancel},
    {"an operator pauses a run", 5, NEEDS(ON_CONTROL), pause_run},
    {"an operator resumes a run", 5, NEEDS(ON_CONTROL), resume},
    {"an operator retries a run", 8, NEEDS(ON_CONTROL), retry},
    {"an operator reruns a run", 4, NEEDS(ON_CONTROL), rerun},
    {"an operator changes many runs", 2, NEEDS(ON_CONTROL), bulk},
    {"an operator reads dead letters", 4, NEEDS(ON_CONTROL), read_letters},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_CONTROL = {
    .name = "control", .actions = ACTIONS, .begin = begin, .finish = finish, .free = release};
