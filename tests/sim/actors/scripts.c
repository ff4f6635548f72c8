/* Short scripts, each in one step, for rules that need exact times or an exact order: a lease that
 * is renewed, a key near the end of its retention, a child that ends while retention is at work.
 * The server may go down at any call: then the script ends, and what it began goes on alone. */
#include "sim/actions.h"

#define TENANT "c0"   /* its keys are kept for a minute */
#define REMOVING "c1" /* its runs are removed as soon as they are over */
#define QUEUEING "c2" /* one run at a time, two in the queue */
#define QUEUE "scripts"

/* --- asking --- */

static struct place *place_of(struct sim *w)
{
    return &w->places[0];
}

/* The answer, if it came and is one of success; NULL: the script is over. */
static struct call *ask(struct sim *w, const char *tenant, const char *method, const char *target,
                        const char *body)
{
    struct call *c = sim_ask(w, place_of(w), tenant, method, target, body);
    sim_tell(w, "  script: %s %s %s -> %d %s", method, target, body != NULL ? body : "",
             c != NULL ? c->status : 0, c != NULL ? c->code : "");
    if (c != NULL && c->status >= 500) {
        call_free(c);
        return NULL;
    }
    return c;
}

/* Keeps a member of an answer's text. False: there is no such answer. */
static bool take(struct call *c, const char *member, char *out, size_t size)
{
    bool ok = c != NULL && c->status == 200;
    if (ok)
        (void)snprintf(out, size, "%s", json_text(c->json, member));
    call_free(c);
    return ok && out[0] != '\0';
}

static bool start(struct sim *w, const char *tenant, const char *workflow, const char *body,
                  char id[static 40])
{
    char target[80];
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/%s/runs", workflow);
    return take(ask(w, tenant, "POST", target, body), "run_id", id, 40);
}

/* "" when it cannot be read. */
static void status_of(struct sim *w, const char *tenant, const char *run, char out[static 16])
{
    char target[80];
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s", run);
    out[0] = '\0';
    (void)take(ask(w, tenant, "GET", target, NULL), "status", out, 16);
}

static bool put_workflow(struct sim *w, const char *tenant, const char *id, const char *body)
{
    char target[80];
    char kept[40];
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/%s", id);
    return take(ask(w, tenant, "PUT", target, body), "id", kept, sizeof(kept));
}

static bool put_tenant(struct sim *w, const char *tenant, const char *body)
{
    char target[80];
    char kept[40];
    (void)snprintf(target, sizeof(target), "/api/v1/tenants/%s", tenant);
    return take(ask(w, tenant, "PUT", target, body), "id", kept, sizeof(kept));
}

#define SLEEP(ms) "{\"name\":\"a\",\"type\":\"sleep\",\"duration_ms\":" #ms "}"

static void warm(struct sim *w, struct place *p)
{
    (void)p;
    bool ok = put_tenant(w, TENANT, "{\"idempotency_retention_s\":60}");
    ok &= put_tenant(w, REMOVING, "{\"run_retention_s\":0}");
    ok &= put_tenant(w, QUEUEING,
                     "{\"max_concurrent_runs\":1,\"max_queued_runs\":2,\"at_limit\":\"queue\"}");
    ok &= put_workflow(
        w, TENANT, "task",
        "{\"steps\":[{\"name\":\"a\",\"type\":\"task\",\"handler\":\"h\",\"queue\":\"" QUEUE
        "\"}]}");
    ok &= put_workflow(w, TENANT, "sleep", "{\"steps\":[" SLEEP(2000) "]}");
    ok &= put_workflow(w, TENANT, "late", "{\"timeout_s\":1,\"steps\":[" SLEEP(5000) "]}");
    ok &= put_workflow(
        w, TENANT, "signal",
        "{\"signals\":{\"dedup_window_s\":60},\"timeout_s\":300,\"steps\":[{\"name\":\"a\","
        "\"type\":\"wait_signal\",\"signal\":\"never\"}]}");
    ok &= put_workflow(w, TENANT, "ask",
                       "{\"steps\":[{\"name\":\"a\",\"type\":\"approval\",\"prompt\":\"p\","
                       "\"content\":1,\"expires_s\":2}]}");
    ok &= put_workflow(
        w, TENANT, "undo",
        "{\"timeout_s\":1,\"steps\":[{\"name\":\"a\",\"type\":\"task\",\"handler\":\"h\","
        "\"queue\":\"undone\",\"compensate\":{\"handler\":\"u\"}},"
        "{\"name\":\"b\",\"type\":\"sleep\",\"duration_ms\":5000}]}");
    ok &= put_workflow(w, REMOVING, "child", "{\"steps\":[" SLEEP(20000) "]}");
    ok &= put_workflow(
        w, REMOVING, "parent",
        "{\"steps\":[{\"name\":\"a\",\"type\":\"workflow\",\"workflow_id\":\"child\"}]}");
    ok &= put_workflow(w, QUEUEING, "sleep", "{\"steps\":[" SLEEP(2000) "]}");
    assert(ok);
}

/* --- times --- */

static bool claim(struct sim *w, const char *queue, int lease_ms, char job[static 40],
                  char token[static 64])
{
    char body[120];
    (void)snprintf(body, sizeof(body), "{\"worker_id\":\"s\",\"queues\":[\"%s\"],\"lease_ms\":%d}",
                   queue, lease_ms);
    struct call *c = ask(w, TENANT, "POST", "/api/v1/jobs/claim", body);
    const json_t *first = c != NULL ? json_array_get(json_object_get(c->json, "jobs"), 0) : NULL;
    (void)snprintf(job, 40, "%s", json_text(first, "job_id"));
    (void)snprintf(token, 64, "%s", json_text(first, "lease_token"));
    call_free(c);
    return job[0] != '\0';
}

static struct call *tell_job(struct sim *w, const char *job, const char *verb, const char *token)
{
    char target[80];
    char body[120];
    (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s/%s", job, verb);
    (void)snprintf(body, sizeof(body), "{\"lease_token\":\"%s\"}", token);
    return ask(w, TENANT, "POST", target, body);
}

/* A lease lasts from the last heartbeat, and not from the claim. */
static void renew_lease(struct sim *w)
{
    char run[40];
    char job[40];
    char token[64];
    if (!start(w, TENANT, "task", "{}", run) || !claim(w, QUEUE, 4000, job, token))
        return;
    sim_pass_ms(w, 2500);
    int64_t beat = sim_now_ms(w);
    struct call *c = tell_job(w, job, "heartbeat", token);
    bool renewed = c != NULL && c->status == 200;
    call_free(c);
    if (!renewed)
        return;
    sim_pass_ms(w, 2500);
    c = tell_job(w, job, "complete", token);
    bool in_time = sim_now_ms(w) < beat + 4000;
    sim_check(w, 3, c == NULL || c->status == 200 || !in_time,
              "a lease that was renewed is answered %d %s before its end", c->status, c->code);
    call_free(c);
}

static void sleep_a_while(struct sim *w)
{
    char run[40];
    char status[16];
    if (!start(w, TENANT, "sleep", "{}", run))
        return;
    sim_pass_ms(w, 1500);
    status_of(w, TENANT, run, status);
    sim_check(w, 0, strcmp(status, "succeeded") != 0, "run %s slept less than two seconds", run);
}

static void pass_deadline(struct sim *w)
{
    char run[40];
    char status[16];
    if (!start(w, TENANT, "late", "{}", run))
        return;
    sim_pass_ms(w, 9000);
    status_of(w, TENANT, run, status);
    bool waits = strcmp(status, "waiting") == 0 && !sim_on(w, ON_DISK);
    sim_check(w, 0, strcmp(status, "succeeded") != 0 && !waits, "run %s is %s after its timeout",
              run, status);
}

static struct call *start_with_key(struct sim *w)
{
    char body[80];
    (void)snprintf(body, sizeof(body), "{\"idempotency_key\":\"script-%d\"}", w->step);
    return ask(w, TENANT, "POST", "/api/v1/workflows/sleep/runs", body);
}

static void keep_key(struct sim *w)
{
    char first[40];
    char again[40];
    if (!take(start_with_key(w), "run_id", first, sizeof(first)))
        return;
    sim_pass_ms(w, 40 * 1000);
    if (take(start_with_key(w), "run_id", again, sizeof(again)))
        sim_check(w, 1, strcmp(first, again) == 0,
                  "a key makes runs %s and %s within its retention", first, again);
}

static struct call *signal_run(struct sim *w, const char *run)
{
    char target[80];
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/signals", run);
    return ask(w, TENANT, "POST", target, "{\"name\":\"s\",\"dedup_key\":\"k\"}");
}

static void keep_dedup_key(struct sim *w)
{
    char run[40];
    if (!start(w, TENANT, "signal", "{}", run))
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
    if (!start(w, TENANT, "ask", "{}", run))
        return;
    struct call *c = ask(w, TENANT, "GET", "/api/v1/approvals?status=pending&limit=1", NULL);
    const json_t *first = c != NULL ? json_array_get(json_object_get(c->json, "items"), 0) : NULL;
    bool found = strcmp(json_text(first, "run_id"), run) == 0;
    (void)snprintf(target, sizeof(target), "/api/v1/approvals/%s/approve",
                   json_text(first, "job_id"));
    call_free(c);
    if (!found)
        return;
    fibers_pass_ns(INT64_C(3000) * 1000000);
    c = ask(w, TENANT, "POST", target, "{}");
    sim_check(w, 4, c == NULL || c->status == 409, "an approval that has expired is answered %d",
              c->status);
    call_free(c);
}

/* A run that times out undoes what it did. */
static void undo_in_time(struct sim *w)
{
    char run[40];
    char job[40];
    char token[64];
    if (!start(w, TENANT, "undo", "{}", run) || !claim(w, "undone", 4000, job, token))
        return;
    struct call *c = tell_job(w, job, "complete", token);
    bool done = c != NULL && c->status == 200 && strcmp(json_text(c->json, "run_id"), run) == 0;
    call_free(c);
    if (!done)
        return;
    sim_pass_ms(w, 2000);
    char status[16];
    status_of(w, TENANT, run, status);
    sim_check(w, 3, strcmp(status, "timed_out") != 0, "run %s has timed out and undone nothing",
              run);
    if (!claim(w, "undone", 4000, job, token))
        return;
    call_free(tell_job(w, job, "complete", token));
}

/* --- orders --- */

/* The child ends in the same turn in which retention looks for what is over. */
static void end_child_late(struct sim *w)
{
    char run[40];
    char status[16];
    if (!start(w, REMOVING, "parent", "{}", run))
        return;
    sim_pass_ms(w, 5000);
    fibers_pass_ns(INT64_C(90) * 1000000000);
    place_settle(w, place_of(w));
    status_of(w, REMOVING, run, status);
    if (sim_on(w, ON_DISK) && strcmp(status, "failed") != 0)
        return; /* the server may not be able to write yet */
    sim_check(w, 2, status[0] == '\0' || strcmp(status, "succeeded") == 0,
              "run %s is %s, although its child has succeeded", run, status);
}

static void fill_queue(struct sim *w)
{
    char run[40];
    int started = 0;
    for (int i = 0; i < 6; i++)
        started += start(w, QUEUEING, "sleep", "{}", run);
    struct call *c = ask(w, QUEUEING, "GET", "/api/v1/tenants/" QUEUEING, NULL);
    if (c != NULL && c->status == 200)
        sim_check(w, 2,
                  json_number(c->json, "active_runs") <= 1 &&
                      json_number(c->json, "queued_runs") <= 2,
                  "after %d starts %lld runs are active and %lld queued", started,
                  (long long)json_number(c->json, "active_runs"),
                  (long long)json_number(c->json, "queued_runs"));
    call_free(c);
    sim_pass_ms(w, 9000);
}

static bool put_limited(struct sim *w, const char *id, int limit)
{
    char body[160];
    (void)snprintf(body, sizeof(body),
                   "{\"concurrency\":[{\"limit\":%d,\"at_limit\":\"queue\"}],"
                   "\"steps\":[" SLEEP(3000) "]}",
                   limit);
    return put_workflow(w, TENANT, id, body);
}

/* Runs for later come under the limit that is in force when they start. */
static void lower_limit(struct sim *w)
{
    char id[24];
    char body[80];
    char run[40];
    char runs[96];
    struct buf at;
    buf_init(&at, 64);
    buf_put_time(&at, sim_now_ms(w) + place_of(w)->skew_us / 1000 + 2000);
    (void)snprintf(id, sizeof(id), "limited-%d", w->step);
    (void)snprintf(body, sizeof(body), "{\"start_at\":\"%s\"}", at.ptr);
    buf_release(&at);
    if (!put_limited(w, id, 3))
        return;
    for (int i = 0; i < 3; i++)
        (void)start(w, TENANT, id, body, run);
    if (!put_limited(w, id, 1))
        return;
    sim_pass_ms(w, 2500);
    (void)snprintf(runs, sizeof(runs), "/api/v1/runs?workflow_id=%s&status=waiting", id);
    struct call *c = ask(w, TENANT, "GET", runs, NULL);
    size_t active = c != NULL ? json_array_size(json_object_get(c->json, "items")) : 0;
    call_free(c);
    sim_check(w, 2, active <= 1, "%d runs of %s are active, its limit is 1", (int)active, id);
    sim_pass_ms(w, 10 * 1000);
}

static void send(struct sim *w, const char *method, const char *target, const char *body)
{
    struct call_spec spec = {.place = place_of(w),
                             .method = method,
                             .target = target,
                             .tenant = TENANT,
                             .body = body,
                             .at_once = true};
    (void)sim_send(w, &spec);
}

static void put_marked(char out[static 120], int mark)
{
    (void)snprintf(out, 120,
                   "{\"steps\":[{\"name\":\"a\",\"type\":\"transform\",\"output\":{\"mark\":%d}}]}",
                   mark);
}

/* A definition and a start that meet a full disk together leave nothing behind: not even in the
 * writer's memory. */
static void roll_back_definition(struct sim *w)
{
    char target[64];
    char runs[80];
    char body[120];
    struct place *p = place_of(w);
    struct crash_options full = {.powersafe_overwrite = true,
                                 .bytes_max = crash_disk_bytes(p->disk)};
    struct crash_options room = {.powersafe_overwrite = true};
    if (!p->up)
        return;
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/marked-%d", w->step);
    (void)snprintf(runs, sizeof(runs), "%s/runs", target);
    crash_disk_set_options(p->disk, &full);
    put_marked(body, 1);
    send(w, "PUT", target, body);
    send(w, "POST", runs, "{}");
    place_settle(w, p);
    crash_disk_set_options(p->disk, &room);
    put_marked(body, 2);
    struct call *c = ask(w, TENANT, "PUT", target, body);
    bool put = c != NULL && c->status == 200;
    call_free(c);
    c = put ? ask(w, TENANT, "POST", runs, "{}") : NULL;
    if (c != NULL && c->status == 200) {
        const json_t *run = json_object_get(c->json, "run");
        int64_t mark = json_number(json_object_get(run, "output"), "mark");
        sim_check(w, 6, mark == 2, "run %s executes a definition that was not kept",
                  json_text(c->json, "run_id"));
    }
    call_free(c);
}

static uint64_t draw(void *ctx, uint64_t below)
{
    return lot_bits(&((struct sim *)ctx)->chaos) % below;
}

/* The process dies between the write and the sync of a result. What the next one finds in the page
 * cache and acknowledges must survive a power cut. */
static void complete_twice(struct sim *w)
{
    char run[40];
    char job[40];
    char token[64];
    char status[16];
    struct place *p = place_of(w);
    if (!start(w, TENANT, "task", "{}", run))
        return;
    sim_pass_ms(w, 3000);
    if (!claim(w, QUEUE, 30 * 1000, job, token) || !p->up)
        return;
    crash_disk_clear_faults(p->disk);
    crash_disk_fail(p->disk, &(struct crash_fault){.kind = CRASH_SYNC,
                                                   .nth = 1,
                                                   .result = CRASH_KILL,
                                                   .cut = CRASH_CUT_ANY,
                                                   .draw = draw,
                                                   .ctx = w});
    call_free(tell_job(w, job, "complete", token));
    if (p->up || !place_start(w, p))
        return;
    struct call *c = tell_job(w, job, "complete", token);
    bool done = c != NULL && c->status == 200;
    if (done)
        (void)snprintf(run, sizeof(run), "%s", json_text(c->json, "run_id"));
    call_free(c);
    place_end(w, p, END_CUT);
    if (!place_start(w, p) || !done)
        return;
    status_of(w, TENANT, run, status);
    sim_check(w, 6, status[0] == '\0' || strcmp(status, "succeeded") == 0,
              "run %s is %s, although its result was acknowledged", run, status);
}

/* --- life --- */

static const struct action ACTIONS[] = {
    {"a lease is renewed", 3, NEEDS(ON_SCRIPTS), renew_lease},
    {"a run sleeps a while", 2, NEEDS(ON_SCRIPTS), sleep_a_while},
    {"a run passes its deadline", 2, NEEDS(ON_SCRIPTS), pass_deadline},
    {"a key is used again in time", 2, NEEDS(ON_SCRIPTS), keep_key},
    {"a signal is repeated in time", 2, NEEDS(ON_SCRIPTS), keep_dedup_key},
    {"somebody decides too late", 3, NEEDS(ON_SCRIPTS), decide_too_late},
    {"a run undoes its work in time", 2, NEEDS(ON_SCRIPTS), undo_in_time},
    {"a child ends late", 3, NEEDS(ON_SCRIPTS) | NEEDS(ON_CHILDREN), end_child_late},
    {"a queue is filled", 2, NEEDS(ON_SCRIPTS), fill_queue},
    {"a limit is lowered for runs to come", 3, NEEDS(ON_SCRIPTS), lower_limit},
    {"a definition is rolled back", 3, NEEDS(ON_SCRIPTS) | NEEDS(ON_DISK), roll_back_definition},
    {"a result is acknowledged after a kill", 4,
     NEEDS(ON_SCRIPTS) | NEEDS(ON_KILLS) | NEEDS(ON_CUTS), complete_twice},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_SCRIPTS = {.name = "scripts", .actions = ACTIONS, .warm = warm};
