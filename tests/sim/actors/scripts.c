/* Scripts of exact times: a lease that is renewed, a key near the end of its retention. */
#include "sim/actors/script.h"

static void warm(struct sim *w, struct place *p)
{
    static const struct script_put ROWS[] = {
        {SCRIPT_TENANT, "/api/v1/tenants/" SCRIPT_TENANT, "{\"idempotency_retention_s\":60}"},
        {SCRIPT_TENANT, "/api/v1/workflows/task",
         "{\"steps\":[{\"name\":\"a\",\"type\":\"task\",\"handler\":\"h\",\"queue\":\"" SCRIPT_QUEUE
         "\"}]}"},
        {SCRIPT_TENANT, "/api/v1/workflows/sleep", "{\"steps\":[" SCRIPT_SLEEP(2000) "]}"},
        {SCRIPT_TENANT, "/api/v1/workflows/late",
         "{\"timeout_s\":1,\"steps\":[" SCRIPT_SLEEP(5000) "]}"},
        {SCRIPT_TENANT, "/api/v1/workflows/signal",
         "{\"signals\":{\"dedup_window_s\":60},\"timeout_s\":300,\"steps\":[{\"name\":\"a\","
         "\"type\":\"wait_signal\",\"signal\":\"never\"}]}"},
        {SCRIPT_TENANT, "/api/v1/workflows/ask",
         "{\"steps\":[{\"name\":\"a\",\"type\":\"approval\",\"prompt\":\"p\",\"content\":1,"
         "\"expires_s\":2}]}"},
        {SCRIPT_TENANT, "/api/v1/workflows/undo",
         "{\"timeout_s\":1,\"steps\":[{\"name\":\"a\",\"type\":\"task\",\"handler\":\"h\","
         "\"queue\":\"undone\",\"compensate\":{\"handler\":\"u\"}},"
         "{\"name\":\"b\",\"type\":\"sleep\",\"duration_ms\":5000}]}"},
    };
    script_warm(w, p, ROWS, ARRAY_LEN(ROWS));
}

/* --- times --- */

/* A lease lasts from the last heartbeat, and not from the claim. */
static void renew_lease(struct sim *w)
{
    char run[40];
    struct script_job job;
    if (!script_start(w, SCRIPT_TENANT, "task", "{}", run) ||
        !script_claim(w, SCRIPT_TENANT, SCRIPT_QUEUE, 4000, &job))
        return;
    sim_pass_ms(w, 2500);
    int64_t beat = sim_now_ms(w);
    struct call *c = script_answer(w, SCRIPT_TENANT, &job, "heartbeat", "");
    bool renewed = c != NULL && c->status == 200;
    call_free(c);
    if (!renewed)
        return;
    sim_pass_ms(w, 2500);
    c = script_answer(w, SCRIPT_TENANT, &job, "complete", "");
    bool in_time = sim_now_ms(w) < beat + 4000;
    sim_check(w, 3, c == NULL || c->status == 200 || !in_time,
              "a lease that was renewed is answered %d %s before its end", c->status, c->code);
    call_free(c);
}

/* A worker whose lease has ended, and whose job nobody else has claimed yet, does not get it back.
 */
static void outlive_lease(struct sim *w)
{
    static const char *const VERBS[] = {"heartbeat", "complete", "fail"};
    char run[40];
    char target[80];
    char status[16];
    struct script_job job;
    if (!script_start(w, SCRIPT_TENANT, "task", "{}", run) ||
        !script_claim(w, SCRIPT_TENANT, SCRIPT_QUEUE, 1000, &job))
        return;
    sim_pass_ms(w, 2500);
    (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s", job.id);
    if (!script_take(script_ask(w, SCRIPT_TENANT, "GET", target, NULL), "state", status,
                     sizeof(status)) ||
        strcmp(status, "pending") != 0)
        return;
    const char *verb = VERBS[lot_below(&w->lot, (int)ARRAY_LEN(VERBS))];
    bool fails = strcmp(verb, "fail") == 0;
    bool taken = script_done(
        script_answer(w, SCRIPT_TENANT, &job, verb, fails ? ",\"error\":{\"code\":\"X\"}" : ""));
    sim_check(w, 3, !taken, "%s of job %s is taken after the end of its lease", verb, job.id);
}

static void sleep_a_while(struct sim *w)
{
    char run[40];
    char status[16];
    if (!script_start(w, SCRIPT_TENANT, "sleep", "{}", run))
        return;
    sim_pass_ms(w, 1500);
    script_status(w, SCRIPT_TENANT, run, status);
    sim_check(w, 0, strcmp(status, "succeeded") != 0, "run %s slept less than two seconds", run);
}

static void pass_deadline(struct sim *w)
{
    char run[40];
    char status[16];
    if (!script_start(w, SCRIPT_TENANT, "late", "{}", run))
        return;
    sim_pass_ms(w, 9000);
    script_status(w, SCRIPT_TENANT, run, status);
    bool waits = strcmp(status, "waiting") == 0 && !sim_on(w, ON_DISK);
    sim_check(w, 0, strcmp(status, "succeeded") != 0 && !waits, "run %s is %s after its timeout",
              run, status);
}

static struct call *start_with_key(struct sim *w)
{
    char body[80];
    (void)snprintf(body, sizeof(body), "{\"idempotency_key\":\"script-%d\"}", w->step);
    return script_ask(w, SCRIPT_TENANT, "POST", "/api/v1/workflows/sleep/runs", body);
}

static void keep_key(struct sim *w)
{
    char first[40];
    char again[40];
    if (!script_take(start_with_key(w), "run_id", first, sizeof(first)))
        return;
    sim_pass_ms(w, 40 * 1000);
    if (script_take(start_with_key(w), "run_id", again, sizeof(again)))
        sim_check(w, 1, strcmp(first, again) == 0,
                  "a key makes runs %s and %s within its retention", first, again);
}

static struct call *signal_run(struct sim *w, const char *run)
{
    char target[80];
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/signals", run);
    return script_ask(w, SCRIPT_TENANT, "POST", target, "{\"name\":\"s\",\"dedup_key\":\"k\"}");
}

static void keep_dedup_key(struct sim *w)
{
    char run[40];
    if (!script_start(w, SCRIPT_TENANT, "signal", "{}", run))
        return;
    struct call *c = signal_run(w, run);
    bool sent = c != NULL && c->status == 200;
    call_free(c);
    if (!sent)
        return;
    sim_pass_ms(w, 40 * 1000);
    c = signal_run(w, run);
    sim_check(w, 5,
              c == NULL || c->status != 200 || json_is_true(json_object_get(c->json, "duplicate")),
              "a signal is taken twice within its window");
    call_free(c);
}

/* The decision comes before the server has noticed that the time is over. */
static void decide_too_late(struct sim *w)
{
    char run[40];
    char target[96];
    if (!script_start(w, SCRIPT_TENANT, "ask", "{}", run))
        return;
    struct call *c =
        script_ask(w, SCRIPT_TENANT, "GET", "/api/v1/approvals?status=pending&limit=1", NULL);
    const json_t *first = c != NULL ? json_array_get(json_object_get(c->json, "items"), 0) : NULL;
    bool found = strcmp(json_text(first, "run_id"), run) == 0;
    (void)snprintf(target, sizeof(target), "/api/v1/approvals/%s/approve",
                   json_text(first, "job_id"));
    call_free(c);
    if (!found)
        return;
    fibers_pass_ns(INT64_C(3000) * 1000000);
    c = script_ask(w, SCRIPT_TENANT, "POST", target, "{}");
    sim_check(w, 4, c == NULL || c->status == 409, "an approval that has expired is answered %d",
              c->status);
    call_free(c);
    place_settle(w, script_place(w)); /* others find a server that has noticed */
}

/* A run that times out undoes what it did. */
static void undo_in_time(struct sim *w)
{
    char run[40];
    struct script_job job;
    if (!script_start(w, SCRIPT_TENANT, "undo", "{}", run) ||
        !script_claim(w, SCRIPT_TENANT, "undone", 4000, &job))
        return;
    struct call *c = script_answer(w, SCRIPT_TENANT, &job, "complete", "");
    bool done = c != NULL && c->status == 200 && strcmp(json_text(c->json, "run_id"), run) == 0;
    call_free(c);
    if (!done)
        return;
    sim_pass_ms(w, 2000);
    char status[16];
    script_status(w, SCRIPT_TENANT, run, status);
    sim_check(w, 3, strcmp(status, "timed_out") != 0, "run %s has timed out and undone nothing",
              run);
    if (!script_claim(w, SCRIPT_TENANT, "undone", 4000, &job))
        return;
    call_free(script_answer(w, SCRIPT_TENANT, &job, "complete", ""));
}

/* --- life --- */

static const struct action ACTIONS[] = {
    {"a lease is renewed", 3, NEEDS(ON_SCRIPTS), renew_lease},
    {"a worker outlives its lease", 3, NEEDS(ON_SCRIPTS), outlive_lease},
    {"a run sleeps a while", 2, NEEDS(ON_SCRIPTS), sleep_a_while},
    {"a run passes its deadline", 2, NEEDS(ON_SCRIPTS), pass_deadline},
    {"a key is used again in time", 2, NEEDS(ON_SCRIPTS), keep_key},
    {"a signal is repeated in time", 2, NEEDS(ON_SCRIPTS), keep_dedup_key},
    {"somebody decides too late", 3, NEEDS(ON_SCRIPTS), decide_too_late},
    {"a run undoes its work in time", 2, NEEDS(ON_SCRIPTS), undo_in_time},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_SCRIPTS = {.name = "scripts", .actions = ACTIONS, .warm = warm};
