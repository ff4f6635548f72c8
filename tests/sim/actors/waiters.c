/* Callers that wait: a worker that polls gets a job as soon as there is one, and a client that
 * waits for the end of its run is told at once. */
#include "sim/actions.h"

#include <stdlib.h>

#define TENANT "p0"
#define QUEUE "polled"

enum {
    WAIT_MS = 30 * 1000,
    LEASE_MS = 3000,
    LOOKS = 3,      /* at a queue, before a job in it counts as forgotten */
    LATE_MS = 1000, /* an answer that comes so long after the run's end was not woken */
    RUNS_MAX = 64,
};

struct waiters {
    char runs[RUNS_MAX][40];
    int run_count;
};

static struct waiters *state(struct sim *w)
{
    return w->states[ACTOR_WAITERS_NUMBER];
}

static void warm(struct sim *w, struct place *p)
{
    static const char *const WORKFLOWS[][2] = {
        {"/api/v1/workflows/p-task",
         "{\"steps\":[{\"name\":\"a\",\"type\":\"task\",\"handler\":\"h\",\"queue\":\"" QUEUE
         "\",\"retry\":{\"max_attempts\":50}}]}"},
        {"/api/v1/workflows/p-sleep",
         "{\"steps\":[{\"name\":\"a\",\"type\":\"sleep\",\"duration_ms\":400}]}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(WORKFLOWS); i++) {
        struct call *c = sim_ask(w, p, TENANT, "PUT", WORKFLOWS[i][0], WORKFLOWS[i][1]);
        assert(c != NULL && c->status == 200);
        call_free(c);
    }
}

/* --- workers --- */

static void note_run(struct sim *w, const char *id)
{
    struct waiters *s = state(w);
    for (int i = 0; i < s->run_count; i++) {
        if (strcmp(s->runs[i], id) == 0)
            return;
    }
    if (s->run_count < RUNS_MAX)
        (void)snprintf(s->runs[s->run_count++], sizeof(s->runs[0]), "%s", id);
}

static void task_started(struct sim *w, struct call *c)
{
    if (c->status == 200)
        note_run(w, json_text(c->json, "run_id"));
}

static void start_task(struct sim *w)
{
    struct call_spec spec = {.place = &w->places[0],
                             .method = "POST",
                             .target = "/api/v1/workflows/p-task/runs",
                             .tenant = TENANT,
                             .body = "{}",
                             .done = task_started};
    (void)sim_send(w, &spec);
}

static void send_to_job(struct sim *w, const json_t *job, const char *verb, const char *members)
{
    char target[80];
    char body[160];
    (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s/%s", json_text(job, "job_id"), verb);
    (void)snprintf(body, sizeof(body), "{\"lease_token\":\"%s\"%s}", json_text(job, "lease_token"),
                   members);
    struct call_spec spec = {.place = &w->places[0],
                             .method = "POST",
                             .target = target,
                             .tenant = TENANT,
                             .body = body,
                             .retries = true,
                             .doubles = true};
    (void)sim_send(w, &spec);
}

/* Completes what it got, gives it back, or dies with it. */
static void polled(struct sim *w, struct call *c)
{
    const json_t *job = json_array_get(json_object_get(c->json, "jobs"), 0);
    if (c->status != 200 || job == NULL)
        return;
    note_run(w, json_text(job, "run_id"));
    int what = w->calm ? 0 : lot_below(&w->lot, 3);
    if (what == 0)
        send_to_job(w, job, "complete", ",\"output\":1");
    else if (what == 1)
        send_to_job(w, job, "release", "");
}

static void poll(struct sim *w)
{
    char body[160];
    (void)snprintf(body, sizeof(body),
                   "{\"worker_id\":\"p%d\",\"queues\":[\"" QUEUE
                   "\"],\"lease_ms\":%d,\"wait_ms\":%d}",
                   w->step, LEASE_MS, WAIT_MS);
    struct call_spec spec = {.place = &w->places[0],
                             .method = "POST",
                             .target = "/api/v1/jobs/claim",
                             .tenant = TENANT,
                             .body = body,
                             .done = polled};
    (void)sim_send(w, &spec);
}

static bool polls(const struct call *c)
{
    return c->spec.done == polled && c->state == CALL_AT_SERVER && !c->x->answered && !c->x->cut;
}

static int count_polls(const struct sim *w)
{
    int count = 0;
    for (const struct call *c = w->calls; c != NULL; c = c->next)
        count += polls(c);
    return count;
}

/* Jobs in the queue that are ready, while this many workers wait. */
static int64_t ready_jobs(struct sim *w, struct place *p, int *ret_waiting)
{
    struct call *c = sim_ask(w, p, TENANT, "GET", "/api/v1/queues", NULL);
    const json_t *queue = NULL;
    if (c != NULL && c->status == 200)
        queue = json_array_get(json_object_get(c->json, "items"), 0);
    int64_t ready = json_number(queue, "ready");
    call_free(c);
    *ret_waiting = count_polls(w);
    return ready;
}

/* When a server is at rest, no worker waits while a job is ready. A job that a worker gives back
 * while somebody looks is ready for a moment; it is not ready whenever somebody looks. */
static void look_at_queue(struct sim *w)
{
    struct place *p = &w->places[0];
    int64_t ready = 1;
    int waiting = 1;
    if (sim_on(w, ON_NODES)) /* a worker may wait at one that stands still */
        return;
    for (int i = 0; i < LOOKS && ready > 0 && waiting > 0; i++) {
        place_settle(w, p);
        if (!p->up || count_polls(w) == 0)
            return;
        ready = ready_jobs(w, p, &waiting);
    }
    sim_check(w, 0, ready <= 0 || waiting == 0, "%d workers wait while %lld jobs are ready",
              waiting, (long long)ready);
}

/* --- clients --- */

/* The time now, by the server's clock, since the time that an answer shows; 0: it shows none. */
static int64_t since_ms(const struct sim *w, const struct place *p, const char *time)
{
    int64_t then = 0;
    if (!time_parse(str_of(time), &then))
        return 0;
    return sim_now_ms(w) + p->skew_us / 1000 - then;
}

static void waited(struct sim *w, struct call *c)
{
    const json_t *run = json_object_get(c->json, "run");
    if (c->status != 200 || c->tries > 1 || c->replayed || sim_on(w, ON_CLOCKS) ||
        sim_on(w, ON_NODES))
        return;
    int64_t late = since_ms(w, c->spec.place, json_text(run, "finished_at"));
    sim_check(w, 0, late - w->leap_ms < LATE_MS,
              "a client hears of the end of its run after %lld ms", (long long)late);
}

static void start_and_wait(struct sim *w)
{
    char target[80];
    char key[32];
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/p-sleep/runs?wait_ms=%d", WAIT_MS);
    (void)snprintf(key, sizeof(key), "wait-%d", w->step);
    struct call_spec spec = {.place = &w->places[0],
                             .method = "POST",
                             .target = target,
                             .tenant = TENANT,
                             .key = key,
                             .body = "{}",
                             .retries = true,
                             .done = waited};
    (void)sim_send(w, &spec);
}

/* --- life --- */

/* Works until every task is done. */
static bool finish(struct sim *w)
{
    struct waiters *s = state(w);
    for (int i = s->run_count; i-- > 0;) {
        char target[80];
        (void)snprintf(target, sizeof(target), "/api/v1/runs/%s", s->runs[i]);
        struct call *c = sim_ask(w, &w->places[0], TENANT, "GET", target, NULL);
        sim_check(w, 6, c == NULL || c->status == 200, "run %s is answered %d %s", s->runs[i],
                  c->status, c->code);
        if (c != NULL && json_is_string(json_object_get(c->json, "finished_at")))
            memcpy(s->runs[i], s->runs[--s->run_count], sizeof(s->runs[i]));
        call_free(c);
    }
    if (s->run_count > 0 && count_polls(w) == 0)
        poll(w);
    return s->run_count > 0;
}

static void begin(struct sim *w)
{
    w->states[ACTOR_WAITERS_NUMBER] = calloc(1, sizeof(struct waiters));
    assert(state(w) != NULL);
}

static void release(struct sim *w)
{
    free(state(w));
    w->states[ACTOR_WAITERS_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"a task begins that workers poll for", 6, NEEDS(ON_WAITERS), start_task},
    {"a worker polls", 8, NEEDS(ON_WAITERS), poll},
    {"somebody looks at a polled queue", 8, NEEDS(ON_WAITERS), look_at_queue},
    {"a client waits for its run", 6, NEEDS(ON_WAITERS), start_and_wait},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_WAITERS = {.name = "waiters",
                                    .actions = ACTIONS,
                                    .warm = warm,
                                    .begin = begin,
                                    .audit = look_at_queue,
                                    .finish = finish,
                                    .free = release};
