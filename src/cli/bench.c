/* pawl bench: a worker that completes jobs as fast as the server hands them out. */
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/term/progress.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 256,
    CLAIM_WAIT_MS = 1000, /* a stop may take this long too */
    PAUSE_MS = 1000,      /* after a failed call: the server may be starting */
};

static const struct option OPTIONS_WORKER[] = {
    {.name = "queue",
     .value = "QUEUE",
     .help = "Complete the jobs of this queue",
     .required = true,
     .many = true},
    {.name = "connections",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .max = CONNECTIONS_MAX,
     .fallback = "4",
     .help = "Threads, each with a connection of its own"},
    {.name = "max",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .max = CLAIM_MAX,
     .fallback = "32",
     .help = "Jobs per claim"},
    {.name = NULL},
};

/* Shared by the threads; the claim does not change. */
struct bench {
    struct client_setup setup;
    struct buf claim; /* the body of every claim */
    atomic_bool stop;
    atomic_bool failed;
    _Atomic int64_t completed;
};

static enum cli_exit bench_worker(struct session *s);

static const struct verb VERBS[] = {
    {.name = "worker",
     .about = "Complete every job of a queue without doing any work, until stopped",
     .options = OPTIONS_WORKER,
     .run = bench_worker},
};

const struct command COMMAND_BENCH = {"bench", "Measure the server", VERBS, ARRAY_LEN(VERBS)};

/* A connection: its client, and the memory that its requests reuse. */
struct connection {
    struct bench *bench;
    struct client client;
    struct reply reply;
    struct buf body;
};

/* True when the server accepted the request. Prints a refusal; retries while the server is out of
 * reach, until the bench stops. No idempotency keys here: a lost claim comes back when its lease
 * expires, and the lease token identifies a completion. */
static bool send_request(struct connection *c, const struct request *req)
{
    for (;;) {
        enum cli_exit rc = client_send(&c->client, req, &c->reply);
        if (rc == CLI_DONE && c->reply.status < 300)
            return true;
        if (rc == CLI_DONE)
            refusal_print(&c->reply);
        else
            client_print_error(&c->client, "");
        bool later = rc == CLI_DONE ? c->reply.status >= 500 || c->reply.status == 429
                                    : rc == CLI_UNREACHABLE;
        if (!later || atomic_load(&c->bench->stop))
            return false;
        client_pause(PAUSE_MS);
    }
}

/* All results in one call, which also claims the next jobs, unless the bench stops. */
static void write_results(struct connection *c, const json_t *jobs)
{
    size_t i;
    json_t *job;
    struct json_out out = json_out_to(&c->body);
    buf_clear(&c->body);
    json_open(&out, NULL, '{');
    json_open(&out, "items", '[');
    json_array_foreach (jobs, i, job) {
        json_open(&out, NULL, '{');
        json_add_text(&out, "job_id", json_str(json_object_get(job, "job_id")));
        json_add_text(&out, "lease_token", json_str(json_object_get(job, "lease_token")));
        json_add_raw(&out, "output", STR("{}"));
        json_close(&out, '}');
    }
    json_close(&out, ']');
    if (!atomic_load(&c->bench->stop))
        json_add_raw(&out, "claim", buf_str(&c->bench->claim));
    json_close(&out, '}');
}

/* The jobs of an answer; the caller owns them. NULL: none. */
static json_t *jobs_of(const struct connection *c)
{
    json_t *answer = json_loadb(c->reply.body.ptr, c->reply.body.len, 0, NULL);
    json_t *jobs = json_object_get(answer, "jobs");
    jobs = json_array_size(jobs) > 0 ? json_incref(jobs) : NULL;
    json_decref(answer);
    return jobs;
}

static void *work(void *ctx)
{
    struct bench *b = ctx;
    struct connection c = {.bench = b};
    reply_init(&c.reply);
    buf_init(&c.body, HTTP_BODY_MAX);
    const struct request claim = {.method = "POST",
                                  .path = STR("/api/v1/jobs/claim"),
                                  .body = buf_str(&b->claim),
                                  .wait_ms = CLAIM_WAIT_MS};
    bool able = client_open(&c.client, &b->setup);
    while (able && !atomic_load(&b->stop)) {
        able = send_request(&c, &claim);
        json_t *jobs = able ? jobs_of(&c) : NULL;
        while (jobs != NULL) {
            int64_t sent = (int64_t)json_array_size(jobs);
            write_results(&c, jobs);
            json_decref(jobs);
            struct request results = {
                .method = "POST", .path = STR("/api/v1/jobs:complete"), .body = buf_str(&c.body)};
            able = send_request(&c, &results);
            if (able)
                atomic_fetch_add(&b->completed, sent);
            jobs = able ? jobs_of(&c) : NULL;
        }
    }
    if (!able && !atomic_load(&b->stop)) {
        atomic_store(&b->failed, true);
        kill(getpid(), SIGTERM); /* stop the other threads too */
    }
    client_close(&c.client);
    reply_release(&c.reply);
    buf_release(&c.body);
    return NULL;
}

static void write_claim(struct session *s, struct buf *claim)
{
    char worker[32];
    size_t at = 0;
    const char *queue;
    struct json_out out = json_out_to(claim);
    (void)snprintf(worker, sizeof(worker), "bench-%ld", (long)getpid());
    json_open(&out, NULL, '{');
    json_add_text(&out, "worker_id", str_of(worker));
    json_open(&out, "queues", '[');
    while ((queue = options_next(&s->opt, "queue", &at)) != NULL)
        json_add_text(&out, NULL, str_of(queue));
    json_close(&out, ']');
    json_add_int(&out, "max", options_number(&s->opt, "max", 0));
    json_add_int(&out, "wait_ms", CLAIM_WAIT_MS);
    json_close(&out, '}');
}

/* On a terminal, shows meanwhile how many jobs have been completed. */
static void await_signal(struct bench *b, const sigset_t *signals)
{
    static const struct timespec TICK = {.tv_nsec = 200 * 1000 * 1000};
    struct progress progress = progress_begin("jobs", 0);
    while (sigtimedwait(signals, NULL, &TICK) < 0)
        progress_update(&progress, atomic_load(&b->completed));
    progress_end(&progress);
}

/* Threads inherit the blocked signals, so that only await_signal gets them. The second signal ends
 * the process at once. */
static enum cli_exit bench_worker(struct session *s)
{
    pthread_t threads[CONNECTIONS_MAX];
    size_t wanted = (size_t)options_number(&s->opt, "connections", 0), started = 0;
    struct bench b = {.setup = s->setup};
    sigset_t signals;
    buf_init(&b.claim, HTTP_HEAD_MAX);
    write_claim(s, &b.claim);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    while (started < wanted && pthread_create(&threads[started], NULL, work, &b) == 0)
        started++;
    if (started == wanted)
        await_signal(&b, &signals);
    else
        fprintf(stderr, "pawl: Only %zu of %zu threads could be started\n", started, wanted);
    atomic_store(&b.stop, true);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (started == wanted && !atomic_load(&b.failed))
        printf("%lld jobs completed\n", (long long)atomic_load(&b.completed));
    buf_release(&b.claim);
    return atomic_load(&b.failed) || started < wanted ? CLI_REFUSED : CLI_DONE;
}
