/* Scripts of exact orders: a child that ends while retention is at work, a definition that is
 * rolled back with the start that uses it, a client that leaves before its answer. */
#include "sim/actors/script.h"
#include "sim/events.h"

#define REMOVING "c1" /* its runs are removed as soon as they are over */
#define QUEUEING "c2" /* one run at a time, two in the queue */

#define TASK(name, handler, queue)                                          \
    "{\"name\":\"" name "\",\"type\":\"task\",\"handler\":\"" handler "\"," \
    "\"queue\":\"" queue "\""
/* Its output is the run's input, eight times. */
#define PADDED(name) "{\"name\":\"" name "\",\"type\":\"transform\",\"output\":[" PAD4 "," PAD4 "]}"
#define PAD4 "\"${input.pad}\",\"${input.pad}\",\"${input.pad}\",\"${input.pad}\""
#define FATAL ",\"error\":{\"code\":\"FATAL\",\"retryable\":false}"

enum { LEASE_MS = 60 * 1000, WAIT_MS = 30 * 1000, PAD = 12 * 1000 };

static void warm(struct sim *w, struct place *p)
{
    static const struct script_put ROWS[] = {
        {REMOVING, "/api/v1/tenants/" REMOVING, "{\"run_retention_s\":0}"},
        {QUEUEING, "/api/v1/tenants/" QUEUEING,
         "{\"max_concurrent_runs\":1,\"max_queued_runs\":2,\"at_limit\":\"queue\"}"},
        {REMOVING, "/api/v1/workflows/child", "{\"steps\":[" SCRIPT_SLEEP(20000) "]}"},
        {REMOVING, "/api/v1/workflows/parent",
         "{\"steps\":[{\"name\":\"a\",\"type\":\"workflow\",\"workflow_id\":\"child\"}]}"},
        {REMOVING, "/api/v1/workflows/short",
         "{\"steps\":[{\"name\":\"a\",\"type\":\"transform\",\"output\":1}]}"},
        {QUEUEING, "/api/v1/workflows/sleep", "{\"steps\":[" SCRIPT_SLEEP(2000) "]}"},
        {QUEUEING, "/api/v1/workflows/task", "{\"steps\":[" TASK("a", "h", "retried") "}]}"},
        {SCRIPT_TENANT, "/api/v1/workflows/again",
         "{\"steps\":[" TASK("a", "h", "again") ",\"compensate\":{\"handler\":\"u\"}}," TASK(
             "b", "f", "again") "}]}"},
        {SCRIPT_TENANT, "/api/v1/workflows/awaited",
         "{\"steps\":[" TASK("a", "h", "awaited") "}]}"},
        {SCRIPT_TENANT, "/api/v1/workflows/large",
         "{\"steps\":[" PADDED("a") "," PADDED("b") "," PADDED("c") "," PADDED("d") "," PADDED(
             "e") "," PADDED("f") "]}"},
        {SCRIPT_TENANT, "/api/v1/entity-types/script",
         "{\"queue\":\"entities\",\"handler\":\"h\"}"},
    };
    script_warm(w, p, ROWS, ARRAY_LEN(ROWS));
}

/* --- runs --- */

/* The child ends in the same turn in which retention looks for what is over. */
static void end_child_late(struct sim *w)
{
    char run[40];
    char status[16];
    if (!script_start(w, REMOVING, "parent", "{}", run))
        return;
    sim_pass_ms(w, 5000);
    fibers_pass_ns(INT64_C(90) * 1000000000);
    place_settle(w, script_place(w));
    script_status(w, REMOVING, run, status);
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
        started += script_start(w, QUEUEING, "sleep", "{}", run);
    struct call *c = script_ask(w, QUEUEING, "GET", "/api/v1/tenants/" QUEUEING, NULL);
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

/* One slot, and whoever wants it waits. */
static void check_slot(struct sim *w)
{
    struct call *c = script_ask(w, QUEUEING, "GET", "/api/v1/tenants/" QUEUEING, NULL);
    if (c != NULL && c->status == 200)
        sim_check(w, 2, json_number(c->json, "active_runs") <= 1,
                  "%lld runs are active, the limit is 1",
                  (long long)json_number(c->json, "active_runs"));
    call_free(c);
}

/* While a run has failed, another takes its slot: it cannot be retried. */
static void retry_without_slot(struct sim *w)
{
    char run[40];
    char other[40];
    char target[80];
    struct script_job job;
    if (!script_start(w, QUEUEING, "task", "{}", run) ||
        !script_claim(w, QUEUEING, "retried", LEASE_MS, &job) || strcmp(job.run, run) != 0 ||
        !script_done(script_answer(w, QUEUEING, &job, "fail", FATAL)) ||
        !script_start(w, QUEUEING, "sleep", "{}", other))
        return;
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/retry", run);
    call_free(script_ask(w, QUEUEING, "POST", target, NULL));
    check_slot(w);
    sim_pass_ms(w, 5000);
}

/* Does all that there is to do of a run: "h" is done, "u" undoes it, "f" fails. False: nobody knows
 * what was done. */
static bool work_and_fail(struct sim *w, const char *run, int *done)
{
    struct script_job job;
    while (script_claim(w, SCRIPT_TENANT, "again", LEASE_MS, &job)) {
        bool fails = job.handler[0] == 'f';
        bool undoes = job.handler[0] == 'u';
        bool own = strcmp(job.run, run) == 0;
        sim_check(w, 3, !own || !undoes || *done > 0,
                  "run %s undoes what was undone, and not done again", run);
        if (!script_done(script_answer(w, SCRIPT_TENANT, &job, fails ? "fail" : "complete",
                                       fails ? FATAL : "")))
            return false;
        if (own && !fails)
            *done += undoes ? -1 : 1;
    }
    return job.asked;
}

/* A run that has failed and undone its work is retried, and fails again. */
static void undo_again(struct sim *w)
{
    char run[40];
    char target[80];
    int done = 0;
    if (!script_start(w, SCRIPT_TENANT, "again", "{}", run) || !work_and_fail(w, run, &done))
        return;
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/retry", run);
    if (script_done(script_ask(w, SCRIPT_TENANT, "POST", target, NULL)))
        (void)work_and_fail(w, run, &done);
}

static bool put_limited(struct sim *w, const char *id, int limit)
{
    char body[160];
    (void)snprintf(body, sizeof(body),
                   "{\"concurrency\":[{\"limit\":%d,\"at_limit\":\"queue\"}],"
                   "\"steps\":[" SCRIPT_SLEEP(3000) "]}",
                   limit);
    return script_put_workflow(w, SCRIPT_TENANT, id, body);
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
    buf_put_time(&at, sim_now_ms(w) + script_place(w)->skew_us / 1000 + 2000);
    (void)snprintf(id, sizeof(id), "limited-%d", w->step);
    (void)snprintf(body, sizeof(body), "{\"start_at\":\"%s\"}", at.ptr);
    buf_release(&at);
    if (!put_limited(w, id, 3))
        return;
    for (int i = 0; i < 3; i++)
        (void)script_start(w, SCRIPT_TENANT, id, body, run);
    if (!put_limited(w, id, 1))
        return;
    sim_pass_ms(w, 2500);
    (void)snprintf(runs, sizeof(runs), "/api/v1/runs?workflow_id=%s&status=waiting", id);
    struct call *c = script_ask(w, SCRIPT_TENANT, "GET", runs, NULL);
    size_t active = c != NULL ? json_array_size(json_object_get(c->json, "items")) : 0;
    call_free(c);
    sim_check(w, 2, active <= 1, "%d runs of %s are active, its limit is 1", (int)active, id);
    sim_pass_ms(w, 10 * 1000);
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
    struct place *p = script_place(w);
    struct crash_options full = {.powersafe_overwrite = true,
                                 .bytes_max = crash_disk_bytes(p->disk)};
    struct crash_options room = {.powersafe_overwrite = true};
    if (!p->up)
        return;
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/marked-%d", w->step);
    (void)snprintf(runs, sizeof(runs), "%s/runs", target);
    crash_disk_set_options(p->disk, &full);
    put_marked(body, 1);
    (void)script_send(w, "PUT", target, body);
    (void)script_send(w, "POST", runs, "{}");
    place_settle(w, p);
    crash_disk_set_options(p->disk, &room);
    put_marked(body, 2);
    struct call *c = script_ask(w, SCRIPT_TENANT, "PUT", target, body);
    bool put = c != NULL && c->status == 200;
    call_free(c);
    c = put ? script_ask(w, SCRIPT_TENANT, "POST", runs, "{}") : NULL;
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
    struct script_job job;
    char status[16];
    struct place *p = script_place(w);
    if (!script_start(w, SCRIPT_TENANT, "task", "{}", run))
        return;
    sim_pass_ms(w, 3000);
    if (!script_claim(w, SCRIPT_TENANT, SCRIPT_QUEUE, 30 * 1000, &job) || !p->up)
        return;
    crash_disk_clear_faults(p->disk);
    crash_disk_fail(p->disk, &(struct crash_fault){.kind = CRASH_SYNC,
                                                   .nth = 1,
                                                   .result = CRASH_KILL,
                                                   .cut = CRASH_CUT_ANY,
                                                   .draw = draw,
                                                   .ctx = w});
    call_free(script_answer(w, SCRIPT_TENANT, &job, "complete", ""));
    if (p->up || !place_start(w, p))
        return;
    struct call *c = script_answer(w, SCRIPT_TENANT, &job, "complete", "");
    bool done = c != NULL && c->status == 200;
    if (done)
        (void)snprintf(run, sizeof(run), "%s", json_text(c->json, "run_id"));
    call_free(c);
    place_end(w, p, END_CUT);
    if (!place_start(w, p) || !done)
        return;
    script_status(w, SCRIPT_TENANT, run, status);
    sim_check(w, 6, status[0] == '\0' || strcmp(status, "succeeded") == 0,
              "run %s is %s, although its result was acknowledged", run, status);
}

/* --- callers who wait, and who leave --- */

static const char AWAITED[] = "";

static void await(struct sim *w, const char *target, const char *body,
                  void (*done)(struct sim *w, struct call *c))
{
    struct call *c = script_send(w, "POST", target, body);
    c->spec.ref = (void *)(uintptr_t)AWAITED;
    c->spec.number = w->step;
    c->spec.done = done;
    place_settle(w, script_place(w));
}

/* Has the present script's awaited answer not come yet? */
static bool still_awaited(const struct sim *w)
{
    for (const struct call *c = w->calls; c != NULL; c = c->next) {
        if (c->spec.ref == AWAITED && c->spec.number == w->step)
            return c->state != CALL_OVER;
    }
    return false;
}

/* The next request shares its round with this one: it is not decided at once, on the loop. */
static void begin_round(struct sim *w)
{
    (void)script_send(w, "GET", "/api/v1/queues", NULL);
}

/* A job that is handed to a worker that has gone can be had by the next one at once. */
static void leave_with_job(struct sim *w)
{
    char run[40];
    struct script_job job;
    struct place *p = script_place(w);
    if (sim_on(w, ON_DISK) || !script_start(w, SCRIPT_TENANT, "task", "{}", run))
        return; /* a disk that is full keeps a job from being given back */
    begin_round(w);
    sim_hang_up(w, script_send(w, "POST", "/api/v1/jobs/claim",
                               "{\"worker_id\":\"gone\",\"queues\":[\"" SCRIPT_QUEUE
                               "\"],\"max\":100,\"lease_ms\":3600000}"));
    place_settle(w, p);
    if (!p->up)
        return;
    if (script_claim(w, SCRIPT_TENANT, SCRIPT_QUEUE, LEASE_MS, &job))
        call_free(script_answer(w, SCRIPT_TENANT, &job, "complete", ""));
    else
        sim_check(w, 3, !job.asked, "the job of run %s is kept for a worker that has gone", run);
}

/* Whoever has sent an update and waits hears of its outcome at once. */
static void await_update(struct sim *w)
{
    char target[80];
    struct script_job job;
    (void)snprintf(target, sizeof(target), "/api/v1/entities/script/u%d/updates?wait_ms=%d",
                   w->step, WAIT_MS);
    if (!script_place(w)->up)
        return;
    await(w, target, "{\"name\":\"s\",\"dedup_key\":\"k\"}", NULL);
    bool done = still_awaited(w);
    while (done && script_claim(w, SCRIPT_TENANT, "entities", LEASE_MS, &job))
        done = script_done(
            script_answer(w, SCRIPT_TENANT, &job, "complete", ",\"output\":{\"state\":1}"));
    if (!done || !job.asked)
        return;
    place_settle(w, script_place(w));
    sim_check(w, 5, !still_awaited(w), "an update is decided, and its sender waits");
}

/* A call of an entity is handed to a second worker: the result of the first counts no more. */
static void answer_for_another(struct sim *w)
{
    char target[80];
    struct script_job first;
    struct script_job second;
    (void)snprintf(target, sizeof(target), "/api/v1/entities/script/s%d/signals", w->step);
    if (!script_done(script_ask(w, SCRIPT_TENANT, "POST", target, "{\"name\":\"s\"}")) ||
        !script_claim(w, SCRIPT_TENANT, "entities", 1000, &first))
        return;
    sim_pass_ms(w, 1500);
    if (!script_claim(w, SCRIPT_TENANT, "entities", LEASE_MS, &second))
        return;
    struct call *c =
        script_answer(w, SCRIPT_TENANT, &first, "complete", ",\"output\":{\"state\":1}");
    bool refused = c == NULL || strcmp(c->code, "LEASE_LOST") == 0;
    sim_check(w, 3, refused || strcmp(first.id, second.id) != 0,
              "job %s takes the result of its first worker, but was handed to a second", first.id);
    call_free(c);
    call_free(script_answer(w, SCRIPT_TENANT, &second, "complete", ",\"output\":{\"state\":2}"));
}

static void awaited_job(struct sim *w, struct call *c)
{
    char target[80];
    char body[120];
    const json_t *job = json_array_get(json_object_get(c->json, "jobs"), 0);
    if (job == NULL)
        return;
    (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s/complete", json_text(job, "job_id"));
    (void)snprintf(body, sizeof(body), "{\"lease_token\":\"%s\"}", json_text(job, "lease_token"));
    (void)script_send(w, "POST", target, body);
}

/* How many jobs of a queue are ready; 0 when that cannot be read. */
static int64_t ready_jobs(struct sim *w, const char *queue)
{
    size_t i;
    json_t *item;
    int64_t ready = 0;
    struct call *c = script_ask(w, SCRIPT_TENANT, "GET", "/api/v1/queues?limit=200", NULL);
    const json_t *items = c != NULL ? json_object_get(c->json, "items") : NULL;
    json_array_foreach (items, i, item) {
        if (strcmp(json_text(item, "queue"), queue) == 0)
            ready = json_number(item, "ready");
    }
    call_free(c);
    return ready;
}

/* A run starts for which a worker waits. The next change of the same batch needs too much memory
 * and is rolled back: the worker gets its job all the same. */
static void fail_beside_start(struct sim *w)
{
    static char large[PAD + 64];
    struct place *p = script_place(w);
    int head = snprintf(large, sizeof(large), "{\"input\":{\"pad\":\"");
    memset(large + head, 'x', PAD);
    (void)snprintf(large + head + PAD, sizeof(large) - (size_t)head - PAD, "\"}}");
    if (!p->up)
        return;
    await(w, "/api/v1/jobs/claim",
          "{\"worker_id\":\"s\",\"queues\":[\"awaited\"],\"wait_ms\":30000}", awaited_job);
    if (!still_awaited(w) || !p->up)
        return;
    begin_round(w);
    (void)script_send(w, "POST", "/api/v1/workflows/awaited/runs", "{}");
    (void)script_send(w, "POST", "/api/v1/workflows/large/runs", large);
    place_settle(w, p);
    if (still_awaited(w))
        sim_check(w, 3, ready_jobs(w, "awaited") == 0 || !still_awaited(w),
                  "a worker waits while its job is ready");
}

/* --- the bus --- */

static int64_t count_events(struct sim *w, const char *run)
{
    char target[80];
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/events?limit=200", run);
    struct call *c = script_ask(w, REMOVING, "GET", target, NULL);
    size_t count = c != NULL ? json_array_size(json_object_get(c->json, "items")) : 0;
    call_free(c);
    return (int64_t)count;
}

/* Retention waits until the bus has every event of the run. After a restart the server knows only
 * what is in the store. */
static void remove_unpublished(struct sim *w)
{
    char run[40];
    struct place *p = script_place(w);
    events_bus_set_away(w, p, true);
    int64_t count = script_start(w, REMOVING, "short", "{}", run) ? count_events(w, run) : 0;
    sim_pass_ms(w, 130 * 1000);
    place_end(w, p, END_STOP);
    (void)place_start(w, p);
    events_bus_set_away(w, p, false);
    sim_pass_ms(w, 130 * 1000);
    struct call *c = script_ask(w, NULL, "GET", "/api/v1/outbox", NULL);
    if (c != NULL && c->status == 200 && json_number(c->json, "depth") == 0)
        sim_check(w, 6, events_bus_last(w, p, run) >= count || count == 0,
                  "the bus has %lld of %lld events of run %s, and there are no more to come",
                  (long long)events_bus_last(w, p, run), (long long)count, run);
    call_free(c);
}

/* --- life --- */

static const struct action ACTIONS[] = {
    {"a child ends late", 3, NEEDS(ON_SCRIPTS) | NEEDS(ON_CHILDREN), end_child_late},
    {"a queue is filled", 2, NEEDS(ON_SCRIPTS), fill_queue},
    {"a run is retried without a slot", 2, NEEDS(ON_SCRIPTS) | NEEDS(ON_CONTROL),
     retry_without_slot},
    {"a run undoes its work again", 2, NEEDS(ON_SCRIPTS) | NEEDS(ON_UNDO), undo_again},
    {"a limit is lowered for runs to come", 3, NEEDS(ON_SCRIPTS), lower_limit},
    {"a definition is rolled back", 3, NEEDS(ON_SCRIPTS) | NEEDS(ON_DISK), roll_back_definition},
    {"a result is acknowledged after a kill", 4,
     NEEDS(ON_SCRIPTS) | NEEDS(ON_KILLS) | NEEDS(ON_CUTS), complete_twice},
    {"a worker leaves with its job", 2, NEEDS(ON_SCRIPTS), leave_with_job},
    {"somebody waits for an update", 2, NEEDS(ON_SCRIPTS) | NEEDS(ON_ENTITIES), await_update},
    {"a worker answers for another", 2, NEEDS(ON_SCRIPTS) | NEEDS(ON_ENTITIES), answer_for_another},
    {"a change fails beside a start", 4, NEEDS(ON_SCRIPTS) | NEEDS(ON_BUDGET), fail_beside_start},
    {"a run ends while the bus is away", 4, NEEDS(ON_SCRIPTS) | NEEDS(ON_BUS), remove_unpublished},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_ORDERS = {.name = "orders", .actions = ACTIONS, .warm = warm};
