/* pawl bench: a worker that does nothing, as fast as the server lets it. */
#include "base/limits.h"
#include "cli/commands.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 256,
    CLAIM_WAIT_MS = 1000, /* also how long a stop may take */
    PAUSE_MS = 1000,      /* after a failed call: the server may be starting */
};

static const struct flag FLAGS_WORKER[] = {
    {.name = "queue", .value = "Q", .help = "may be given again", .required = true, .many = true},
    {.name = "connections",
     .value = "N",
     .help = "threads, each with its own; default 4",
     .number = true,
     .min = 1,
     .max = CONNECTIONS_MAX},
    {.name = "max",
     .value = "N",
     .help = "jobs in one claim; default 32",
     .number = true,
     .min = 1,
     .max = CLAIM_MAX},
    {.name = NULL},
};

/* What the threads share; only `stop` and `failed` change. */
struct bench {
    struct client_setup setup;
    struct buf claim; /* the body of every claim */
    atomic_bool stop;
    atomic_bool failed;
};

static enum cli_exit bench_worker(struct session *s);

static const struct verb VERBS[] = {
    {.name = "worker",
     .about = "complete every job of a queue at once, until stopped",
     .flags = FLAGS_WORKER,
     .run = bench_worker},
};

const struct command COMMAND_BENCH = {"bench", VERBS, ARRAY_LEN(VERBS)};

/* One connection: its client, and the memory its requests reuse. */
struct connection {
    struct bench *bench;
    struct client client;
    struct reply reply;
    struct buf body;
};

/* True when the server took it. A refusal is printed and stays one; a server out of reach is asked
 * again until it is back or the bench is over. No keys here: a claim lost on the way comes back
 * when its lease ends, and a completion is told apart by its lease token. */
static bool ask(struct connection *c, const struct request *req)
{
    for (;;) {
        enum cli_exit rc = client_send(&c->client, req, &c->reply);
        if (rc == CLI_DONE && c->reply.status < 300)
            return true;
        if (rc == CLI_DONE)
            refusal_print(&c->reply);
        else
            fprintf(stderr, "pawl: %s\n", c->client.error);
        bool later = rc == CLI_DONE ? c->reply.status >= 500 || c->reply.status == 429
                                    : rc == CLI_UNREACHABLE;
        if (!later || atomic_load(&c->bench->stop))
            return false;
        client_pause(PAUSE_MS);
    }
}

/* All results in one call, which brings the next jobs with it. */
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
    json_add_raw(&out, "claim", buf_str(&c->bench->claim));
    json_close(&out, '}');
}

/* The jobs of an answer; the caller owns them. NULL: there are none. */
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
        able = ask(&c, &claim);
        json_t *jobs = able ? jobs_of(&c) : NULL;
        while (jobs != NULL) {
            write_results(&c, jobs);
            json_decref(jobs);
            struct request results = {
                .method = "POST", .path = STR("/api/v1/jobs:complete"), .body = buf_str(&c.body)};
            able = ask(&c, &results);
            jobs = able ? jobs_of(&c) : NULL;
        }
    }
    if (!able && !atomic_load(&b->stop)) {
        atomic_store(&b->failed, true);
        kill(getpid(), SIGTERM); /* the others have nothing to wait for */
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
    json_add_int(&out, "max", options_number(&s->opt, "max", 32));
    json_add_int(&out, "wait_ms", CLAIM_WAIT_MS);
    json_close(&out, '}');
}

/* Threads inherit the blocked signals, so that only sigwait below sees them. After the first one
 * the next ends the process at once. */
static enum cli_exit bench_worker(struct session *s)
{
    pthread_t threads[CONNECTIONS_MAX];
    size_t wanted = (size_t)options_number(&s->opt, "connections", 4), started = 0;
    struct bench b = {.setup = s->setup};
    sigset_t signals;
    int got;
    buf_init(&b.claim, HTTP_HEAD_MAX);
    write_claim(s, &b.claim);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    while (started < wanted && pthread_create(&threads[started], NULL, work, &b) == 0)
        started++;
    if (started == wanted)
        (void)sigwait(&signals, &got);
    else
        fprintf(stderr, "pawl: only %zu of %zu threads could be started\n", started, wanted);
    atomic_store(&b.stop, true);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    buf_release(&b.claim);
    return atomic_load(&b.failed) || started < wanted ? CLI_REFUSED : CLI_DONE;
}
