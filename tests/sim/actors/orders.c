/* Scripts of exact orders: a child that ends while retention is at work, a definition that is
 * rolled back with the start that uses it. */
#include "sim/actors/script.h"

#define REMOVING "c1" /* its runs are removed as soon as they are over */
#define QUEUEING "c2" /* one run at a time, two in the queue */

static void warm(struct sim *w, struct place *p)
{
    static const struct script_put ROWS[] = {
        {REMOVING, "/api/v1/tenants/" REMOVING, "{\"run_retention_s\":0}"},
        {QUEUEING, "/api/v1/tenants/" QUEUEING,
         "{\"max_concurrent_runs\":1,\"max_queued_runs\":2,\"at_limit\":\"queue\"}"},
        {REMOVING, "/api/v1/workflows/child", "{\"steps\":[" SCRIPT_SLEEP(20000) "]}"},
        {REMOVING, "/api/v1/workflows/parent",
         "{\"steps\":[{\"name\":\"a\",\"type\":\"workflow\",\"workflow_id\":\"child\"}]}"},
        {QUEUEING, "/api/v1/workflows/sleep", "{\"steps\":[" SCRIPT_SLEEP(2000) "]}"},
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

/* --- life --- */

static const struct action ACTIONS[] = {
    {"a child ends late", 3, NEEDS(ON_SCRIPTS) | NEEDS(ON_CHILDREN), end_child_late},
    {"a queue is filled", 2, NEEDS(ON_SCRIPTS), fill_queue},
    {"a limit is lowered for runs to come", 3, NEEDS(ON_SCRIPTS), lower_limit},
    {"a definition is rolled back", 3, NEEDS(ON_SCRIPTS) | NEEDS(ON_DISK), roll_back_definition},
    {"a result is acknowledged after a kill", 4,
     NEEDS(ON_SCRIPTS) | NEEDS(ON_KILLS) | NEEDS(ON_CUTS), complete_twice},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_ORDERS = {.name = "orders", .actions = ACTIONS, .warm = warm};
