/* Runs that need more memory than one operation may use. They fail by themselves, with their own
 * error: nobody else's result is refused, nobody else's timer waits, nothing is done by half. */
#include "sim/actors/script.h"
#include "sim/budget.h"

#include "base/limits.h"

#include <stdlib.h>

#define TENANT "m0"
#define ONE_BY_ONE "m1" /* one run at a time */
#define QUEUE "memory"

enum {
    BUDGET = 384 * 1024,
    PAD = 40 * 1000, /* of an input; every step of a large run has it as its output */
    LARGE_STEPS = 12,
    RUNS_MAX = 64,
    JOBS_MAX = 128,
    CLAIMED = 3,
    LEASE_MS = 5000,
    BODY_MAX = PAD + 200,
};

/* What each kind of run does, and how it must end. */
enum kind { SMALL, ECHO, HUGE, SLEEPY, LATE, KINDS };

static const struct {
    const char *workflow;
    const char *first; /* its first step, before the large ones */
    int large_steps;
    bool pads;
    const char *end; /* its status; NULL: it is cancelled in the end */
} ROWS[KINDS] = {
    [SMALL] = {"m-small",
               "{\"name\":\"a\",\"type\":\"task\",\"handler\":\"h\",\"queue\":\"" QUEUE "\"}", 0,
               false, "succeeded"},
    [ECHO] = {"m-echo", NULL, 1, true, "succeeded"},
    [HUGE] = {"m-huge", NULL, LARGE_STEPS, true, "failed"},
    [SLEEPY] = {"m-sleepy", "{\"name\":\"a\",\"type\":\"sleep\",\"duration_ms\":300}", LARGE_STEPS,
                true, "failed"},
    [LATE] = {"m-late",
              "{\"name\":\"a\",\"type\":\"task\",\"handler\":\"h\",\"queue\":\"" QUEUE "\"}",
              LARGE_STEPS, true, NULL},
};

struct known_run {
    char id[40];
    enum kind kind;
    bool over;
};

struct known_job {
    char id[40];
    enum kind kind;
};

struct memory {
    struct known_run runs[RUNS_MAX];
    int run_count;
    struct known_job jobs[JOBS_MAX];
    int job_count;
};

static struct memory *state(struct sim *w)
{
    return w->states[ACTOR_MEMORY_NUMBER];
}

/* --- before all histories --- */

static void put_definition(struct buf *out, enum kind kind)
{
    buf_put(out, STR("{\"steps\":["));
    if (ROWS[kind].first != NULL)
        buf_put(out, str_of(ROWS[kind].first));
    for (int i = 0; i < ROWS[kind].large_steps; i++)
        buf_printf(out, "%s{\"name\":\"t%d\",\"type\":\"transform\",\"output\":\"${input.pad}\"}",
                   i > 0 || ROWS[kind].first != NULL ? "," : "", i);
    buf_put(out, STR("]}"));
}

static void must_put(struct sim *w, struct place *p, const char *tenant, const char *target,
                     const char *body)
{
    struct call *c = sim_ask(w, p, tenant, "PUT", target, body);
    assert(c != NULL && c->status == 200);
    call_free(c);
}

static void warm(struct sim *w, struct place *p)
{
    must_put(w, p, TENANT, "/api/v1/tenants/" TENANT,
             "{\"max_concurrent_runs\":2,\"at_limit\":\"queue\"}");
    must_put(w, p, ONE_BY_ONE, "/api/v1/tenants/" ONE_BY_ONE,
             "{\"max_concurrent_runs\":1,\"at_limit\":\"queue\"}");
    for (enum kind kind = 0; kind < KINDS; kind++) {
        char target[64];
        struct buf body;
        buf_init(&body, 4096);
        put_definition(&body, kind);
        (void)snprintf(target, sizeof(target), "/api/v1/workflows/%s", ROWS[kind].workflow);
        must_put(w, p, TENANT, target, body.ptr);
        if (kind == SMALL || kind == HUGE)
            must_put(w, p, ONE_BY_ONE, target, body.ptr);
        buf_release(&body);
    }
}

/* --- starts --- */

static void note_run(struct sim *w, const struct call *c, enum kind kind)
{
    struct memory *s = state(w);
    const char *id = json_text(c->json, "run_id");
    for (int i = 0; i < s->run_count; i++) {
        if (strcmp(s->runs[i].id, id) == 0)
            return;
    }
    if (s->run_count == RUNS_MAX)
        return;
    struct known_run *r = &s->runs[s->run_count++];
    (void)snprintf(r->id, sizeof(r->id), "%s", id);
    r->kind = kind;
}

static void started(struct sim *w, struct call *c)
{
    enum kind kind = (enum kind)c->spec.number;
    bool too_large = kind == HUGE && strcmp(c->code, "OPERATION_TOO_LARGE") == 0;
    sim_check(w, 1, c->status == 200 || too_large, "a start of %s is answered %d %s",
              ROWS[kind].workflow, c->status, c->code);
    if (c->status == 200)
        note_run(w, c, kind);
}

/* What starts a run of this kind; valid until the next one. */
static const char *body_of(enum kind kind)
{
    static char body[BODY_MAX];
    size_t pad = ROWS[kind].pads ? PAD : 1;
    int head = snprintf(body, sizeof(body), "{\"input\":{\"pad\":\"");
    memset(body + head, 'x', pad);
    (void)snprintf(body + (size_t)head + pad, sizeof(body) - (size_t)head - pad, "\"}}");
    return body;
}

static void start(struct sim *w)
{
    char target[64];
    char key[32];
    enum kind kind = (enum kind)lot_below(&w->lot, KINDS);
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/%s/runs", ROWS[kind].workflow);
    (void)snprintf(key, sizeof(key), "memory-%d", w->step);
    struct call_spec spec = {.place = &w->places[0],
                             .method = "POST",
                             .target = target,
                             .tenant = TENANT,
                             .key = key,
                             .body = body_of(kind),
                             .retries = true,
                             .doubles = true,
                             .done = started,
                             .number = kind};
    (void)sim_send(w, &spec);
}

/* --- results --- */

static const struct known_job *find_job(struct sim *w, const char *id)
{
    const struct memory *s = state(w);
    for (int i = 0; i < s->job_count; i++) {
        if (strcmp(s->jobs[i].id, id) == 0)
            return &s->jobs[i];
    }
    return NULL;
}

static void note_job(struct sim *w, const json_t *job)
{
    struct memory *s = state(w);
    if (find_job(w, json_text(job, "job_id")) != NULL || s->job_count == JOBS_MAX)
        return;
    struct known_job *j = &s->jobs[s->job_count++];
    (void)snprintf(j->id, sizeof(j->id), "%s", json_text(job, "job_id"));
    j->kind = strcmp(json_text(job, "workflow_id"), ROWS[SMALL].workflow) == 0 ? SMALL : LATE;
}

/* The result could not be taken: then nothing of it was. */
static void check_untouched(struct sim *w, const char *id)
{
    char target[80];
    (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s", id);
    struct call *c = sim_ask(w, &w->places[0], TENANT, "GET", target, NULL);
    if (c != NULL && c->status == 200)
        sim_check(w, 3, strcmp(json_text(c->json, "state"), "succeeded") != 0,
                  "the result of job %s was refused, and half of it kept", id);
    call_free(c);
}

static void check_result(struct sim *w, const json_t *result)
{
    const char *id = json_text(result, "job_id");
    const char *status = json_text(result, "status");
    const char *code = json_text(result, "code");
    const struct known_job *job = find_job(w, id);
    bool refused = strcmp(status, "refused") == 0;
    if (job == NULL || strcmp(code, "LEASE_LOST") == 0)
        return;
    if (job->kind == SMALL) {
        sim_check(w, 3, !refused, "the result of a small run is refused: %s", code);
        return;
    }
    sim_check(w, 3, refused, "a result that cannot be stored is answered %s", status);
    if (strcmp(code, "OPERATION_TOO_LARGE") == 0)
        check_untouched(w, id);
}

static void completed(struct sim *w, struct call *c)
{
    size_t i;
    json_t *result;
    sim_check(w, 3, c->status == 200, "a batch of results is answered %d %s", c->status, c->code);
    json_array_foreach (json_object_get(c->json, "results"), i, result)
        check_result(w, result);
}

/* The results of all jobs that a claim's answer holds, in one request; false: there is none. */
static bool put_results(struct sim *w, struct buf *out, const json_t *answer)
{
    size_t i;
    json_t *job;
    const json_t *jobs = json_object_get(answer, "jobs");
    buf_put(out, STR("{\"items\":["));
    json_array_foreach (jobs, i, job) {
        note_job(w, job);
        buf_printf(out, "%s{\"job_id\":\"%s\",\"lease_token\":\"%s\",\"output\":{\"n\":1}}",
                   i > 0 ? "," : "", json_text(job, "job_id"), json_text(job, "lease_token"));
    }
    buf_put(out, STR("]}"));
    return json_array_size(jobs) > 0;
}

static void claimed(struct sim *w, struct call *c)
{
    struct buf body;
    buf_init(&body, 4096);
    if (c->status == 200 && put_results(w, &body, c->json)) {
        struct call_spec spec = {.place = &w->places[0],
                                 .method = "POST",
                                 .target = "/api/v1/jobs:complete",
                                 .tenant = TENANT,
                                 .body = body.ptr,
                                 .retries = true,
                                 .doubles = true,
                                 .done = completed};
        (void)sim_send(w, &spec);
    }
    buf_release(&body);
}

static void put_claim(char out[static 160], int lease_ms)
{
    (void)snprintf(out, 160,
                   "{\"worker_id\":\"m\",\"queues\":[\"" QUEUE "\"],\"max\":%d,\"lease_ms\":%d}",
                   CLAIMED, lease_ms);
}

static void work(struct sim *w)
{
    char body[160];
    put_claim(body, LEASE_MS);
    struct call_spec spec = {.place = &w->places[0],
                             .method = "POST",
                             .target = "/api/v1/jobs/claim",
                             .tenant = TENANT,
                             .body = body,
                             .done = claimed};
    (void)sim_send(w, &spec);
}

/* A run that cannot start waits for the slot of one that can end: whoever completes that one is not
 * to blame. */
static void free_slot_for_large(struct sim *w)
{
    char run[40];
    char other[40];
    struct script_job job;
    if (!script_start(w, ONE_BY_ONE, ROWS[SMALL].workflow, body_of(SMALL), run) ||
        !script_start(w, ONE_BY_ONE, ROWS[HUGE].workflow, body_of(HUGE), other) ||
        !script_claim(w, ONE_BY_ONE, QUEUE, LEASE_MS, &job) || strcmp(job.run, run) != 0)
        return;
    struct call *c = script_answer(w, ONE_BY_ONE, &job, "complete", "");
    sim_check(w, 2, c == NULL || c->status == 200,
              "a result that frees a slot for a run that cannot start is answered %d %s", c->status,
              c->code);
    call_free(c);
}

/* --- the end --- */

static void check_end(struct sim *w, const struct known_run *r, const json_t *run)
{
    const char *status = json_text(run, "status");
    const char *code = json_text(json_object_get(run, "error"), "code");
    if (r->kind == SMALL || r->kind == LATE) /* their workers may have lost all their leases */
        return;
    sim_check(w, 0, strcmp(status, ROWS[r->kind].end) == 0, "run %s of %s is %s in the end", r->id,
              ROWS[r->kind].workflow, status);
    sim_check(w, 0, r->kind == ECHO || strcmp(code, "OPERATION_TOO_LARGE") == 0,
              "run %s of %s failed with %s", r->id, ROWS[r->kind].workflow, code);
}

static void look_at(struct sim *w, struct known_run *r)
{
    char target[80];
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s", r->id);
    struct call *c = sim_ask(w, &w->places[0], TENANT, "GET", target, NULL);
    sim_check(w, 6, c == NULL || c->status == 200, "run %s is answered %d %s", r->id, c->status,
              c->code);
    r->over = c != NULL && json_is_string(json_object_get(c->json, "finished_at"));
    if (r->over)
        check_end(w, r, c->json);
    call_free(c);
}

/* An operator gives up on those that nobody can complete. */
static void cancel(struct sim *w, const struct known_run *r)
{
    char target[80];
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/cancel", r->id);
    call_free(sim_ask(w, &w->places[0], TENANT, "POST", target, "{}"));
}

static bool finish(struct sim *w)
{
    struct memory *s = state(w);
    bool waits = false;
    for (int i = 0; i < s->run_count; i++) {
        struct known_run *r = &s->runs[i];
        if (r->over)
            continue;
        if (r->kind == LATE)
            cancel(w, r);
        look_at(w, r);
        waits |= !r->over;
    }
    if (waits)
        work(w);
    return waits;
}

static void begin(struct sim *w)
{
    w->states[ACTOR_MEMORY_NUMBER] = calloc(1, sizeof(struct memory));
    assert(state(w) != NULL);
    budget_set(sim_on(w, ON_BUDGET) ? BUDGET : OP_BYTES_MAX);
}

static void release(struct sim *w)
{
    free(state(w));
    w->states[ACTOR_MEMORY_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"a client starts a large run", 24, NEEDS(ON_BUDGET), start},
    {"a worker of large runs works", 20, NEEDS(ON_BUDGET), work},
    {"a slot becomes free for a large run", 5, NEEDS(ON_BUDGET), free_slot_for_large},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_MEMORY = {.name = "memory",
                                   .actions = ACTIONS,
                                   .warm = warm,
                                   .begin = begin,
                                   .finish = finish,
                                   .free = release};
