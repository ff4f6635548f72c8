/* pawl worker: runs a command for each job of one or more queues.
 *
 * One loop and no threads: requests run in parallel on one multi handle, and commands are watched
 * through their pipes. There is one slot for each job that may run at a time. Claims carry no
 * idempotency key: when an answer is lost, the job comes back when its lease expires. */
#include "base/env.h"
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/worker_slot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    CLAIM_WAIT_MS = 1000,         /* also how long a stop may take */
    CLAIM_PAUSE_MS = 1000,        /* after a command that could not be started */
    CLAIM_EMPTY_PAUSE_MS = 200,   /* after no jobs at all without having waited */
    GRACE_MS_DEFAULT = 10 * 1000, /* as of container runtimes */
    GRACE_MS_MAX = 60 * 60 * 1000,
    ABORT_MS_MAX = 5 * 1000, /* after the second signal */
    LOOP_MS_MAX = 60 * 1000,
};

static const struct flag FLAGS[] = {
    {.name = "queue", .value = "Q", .help = "may be given again", .required = true, .many = true},
    {.name = "concurrency",
     .value = "N",
     .help = "commands at a time; default 1",
     .number = true,
     .min = 1,
     .max = CLAIM_MAX},
    {.name = "lease-ms",
     .value = "N",
     .help = "how long a job stays ours without a heartbeat; default 30000",
     .number = true,
     .min = LEASE_MS_MIN,
     .max = LEASE_MS_MAX},
    {.name = "grace-ms",
     .value = "N",
     .help = "from SIGTERM to SIGKILL, for a command that has to end; default 10000",
     .number = true,
     .max = GRACE_MS_MAX},
    {.name = "worker-id", .value = "W", .help = "default: host and process"},
    {.name = "pass-api-key",
     .help = "let commands have PAWL_API_KEY, to call the server themselves"},
    {.name = "once", .help = "end after one job"},
    {.name = "max-jobs", .value = "N", .help = "end after so many", .number = true, .min = 1},
    {.name = NULL},
};

/* As wide as a terminal, not as this file. */
/* clang-format off */
static const char NOTES[] =
    "The command gets the job's input as a line of JSON on its standard input. Its exit code decides:\n"
    "  0      the job is completed. Standard output is its output: JSON as it is, other text as\n"
    "         {\"text\": ...}, nothing as null\n"
    "  65     it failed with the code EXIT_65 and is not tried again: the input is at fault\n"
    "  other  it failed with the code EXIT_<n>, or SIGNAL_<n> when a signal ended it, and is tried\n"
    "         again as the step's retry policy says; 75 is the usual choice\n"
    "The end of standard error becomes the error's message. More than 512 KiB of output end the command\n"
    "and fail the job with OUTPUT_TOO_LARGE. Output that is not UTF-8 fails it with OUTPUT_NOT_UTF8, a NUL\n"
    "byte or JSON that pawl refuses (a name twice in an object) with OUTPUT_INVALID.\n"
    "\n"
    "Its environment has PAWL_JOB_ID, PAWL_IDEMPOTENCY_KEY (the same in every attempt), PAWL_KIND (step or\n"
    "entity), PAWL_RUN_ID, PAWL_WORKFLOW_ID and PAWL_STEP (all three empty for an entity), PAWL_HANDLER,\n"
    "PAWL_ATTEMPT, PAWL_TENANT, PAWL_URL and, where there is one, PAWL_ITEM (its place in for_each, from\n"
    "0), PAWL_COMPENSATES (1) and TRACEPARENT. PAWL_API_KEY is withheld unless --pass-api-key is given,\n"
    "PAWL_ROOT_KEY always.\n"
    "\n"
    "For an entity, the input is {\"kind\", \"entity\", \"state\", \"signals\", \"timers\", ...} and the output must\n"
    "be {\"state\", \"set_timers\"?, ...}: see docs/entities.md. What is none fails the call, which is tried\n"
    "again.\n"
    "\n"
    "Heartbeats go out by themselves. When the job was cancelled or its lease lost, the command's process\n"
    "group gets SIGTERM, after the grace SIGKILL, and nothing is reported. What a command leaves running\n"
    "in its group is killed when it ends; the command is killed when the worker is.\n"
    "\n"
    "Each job that is over is a line on standard output. SIGTERM or SIGINT: no new jobs, those at work\n"
    "are finished; a second one kills the commands and gives their jobs back.\n";
/* clang-format on */

static enum cli_exit worker(struct session *s);

static const struct verb VERBS[] = {
    {.about = "run a command for each job of a queue",
     .command = "COMMAND [ARG...]",
     .notes = NOTES,
     .flags = FLAGS,
     .run = worker},
};

const struct command COMMAND_WORKER = {"worker", VERBS, ARRAY_LEN(VERBS)};

struct worker {
    struct worker_pool pool;
    struct worker_slot *slots;
    size_t slot_count;
    struct curl_waitfd *fds;
    int signal_fd;
    int signals;        /* that told us to stop */
    int64_t give_up_at; /* after the second */
    int64_t jobs_left;  /* that may still be begun */
    enum cli_exit rc;   /* not done: it stops by itself */
    struct {
        struct client client;
        struct reply reply;
        struct buf body;
        bool in_flight;
        int64_t called_at;
        int64_t next_at;
        int tries; /* in a row without an answer */
    } claim;
};

static int64_t now_ms(void)
{
    return env_mono_ms(&ENV_SYSTEM);
}

static bool is_stopping(const struct worker *w)
{
    return w->signals > 0 || w->rc != CLI_DONE;
}

/* --- claims --- */

static int64_t free_slots(const struct worker *w)
{
    int64_t count = 0;
    for (size_t i = 0; i < w->slot_count; i++)
        count += worker_slot_is_free(&w->slots[i]);
    return count;
}

static bool may_claim(const struct worker *w)
{
    return !is_stopping(w) && w->jobs_left > 0 && !w->claim.in_flight && free_slots(w) > 0;
}

static void claim(struct worker *w, int64_t now)
{
    struct json_out out = json_out_to(&w->claim.body);
    buf_clear(&w->claim.body);
    json_open(&out, NULL, '{');
    session_add_worker(w->pool.session, &out);
    session_add_queues(w->pool.session, &out);
    json_add_int(&out, "max", MIN(free_slots(w), w->jobs_left));
    json_add_int(&out, "wait_ms", CLAIM_WAIT_MS);
    json_add_int(&out, "lease_ms", w->pool.lease_ms);
    json_close(&out, '}');
    struct request req = {.method = "POST",
                          .path = STR("/api/v1/jobs/claim"),
                          .body = buf_str(&w->claim.body),
                          .wait_ms = CLAIM_WAIT_MS};
    w->claim.called_at = now;
    w->claim.in_flight = client_begin(&w->claim.client, w->pool.multi, &req, &w->claim.reply);
    if (!w->claim.in_flight)
        w->claim.next_at = now + worker_backoff_ms(w->claim.tries++);
}

/* One that cannot be started now may be later; one that does not exist stops the worker. */
static void note_start_failure(struct worker *w, int64_t now)
{
    int failure = w->pool.start_failure;
    if (failure == 0)
        return;
    fprintf(stderr, "pawl: cannot run %s: %s\n", w->pool.session->opt.command[0],
            strerror(failure));
    if (failure == ENOENT || failure == EACCES || failure == ENOTDIR || failure == ENOEXEC)
        w->rc = CLI_REFUSED;
    w->claim.next_at = now + CLAIM_PAUSE_MS;
    w->pool.start_failure = 0;
}

static void assign_jobs(struct worker *w, int64_t now)
{
    size_t i;
    json_t *job;
    json_t *body = answer_json(&w->claim.reply);
    json_t *jobs = json_object_get(body, "jobs");
    struct worker_slot *slot = w->slots;
    int64_t took_ms = now - w->claim.called_at;
    bool late = took_ms > CLAIM_WAIT_MS + w->pool.lease_ms / 2;
    w->claim.next_at = now;
    /* A server that does not wait is on its way down. */
    if (json_array_size(jobs) == 0 && took_ms < CLAIM_WAIT_MS / 2)
        w->claim.next_at = now + CLAIM_EMPTY_PAUSE_MS;
    json_array_foreach (jobs, i, job) {
        while (slot < w->slots + w->slot_count && !worker_slot_is_free(slot))
            slot++;
        if (slot == w->slots + w->slot_count)
            break; /* more than we asked for */
        w->jobs_left--;
        if (is_stopping(w))
            worker_slot_return(slot, job, now);
        else
            worker_slot_take(slot, job, late, now);
        note_start_failure(w, now);
    }
    json_decref(body);
}

static void claim_answered(struct worker *w, enum cli_exit rc, int64_t now)
{
    w->claim.in_flight = false;
    if (rc == CLI_USAGE) { /* the URL is none */
        fprintf(stderr, "pawl: %s\n", w->claim.client.error);
        w->rc = rc;
        return;
    }
    enum answer answer = worker_pool_judge(&w->pool, &w->claim.client, rc);
    if (answer == ANSWER_LATER) {
        w->claim.next_at = now + worker_backoff_ms(w->claim.tries++);
        return;
    }
    w->claim.tries = 0;
    if (answer == ANSWER_TAKEN) {
        assign_jobs(w, now);
        return;
    }
    refusal_print(&w->claim.reply);
    w->rc = CLI_REFUSED;
}

/* --- signals --- */

/* The first one only stops claims. */
static void take_signals(struct worker *w, int64_t now)
{
    struct signalfd_siginfo info;
    while (read(w->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (++w->signals != 2)
            continue;
        w->give_up_at = now + ABORT_MS_MAX;
        for (size_t i = 0; i < w->slot_count; i++)
            worker_slot_abort(&w->slots[i], now);
    }
}

/* --- the loop --- */

static void take_answers(struct worker *w)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(w->pool.multi, &left)) != NULL) {
        struct client *c = NULL;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &c);
        enum cli_exit rc = client_end(c, w->pool.multi, code);
        if (c == &w->claim.client)
            claim_answered(w, rc, now_ms());
        else
            worker_slot_answered(CONTAINER_OF(c, struct worker_slot, client), rc, now_ms());
        note_start_failure(w, now_ms());
    }
}

static void wait(struct worker *w, int64_t now)
{
    unsigned count = 0;
    int64_t until = MIN(now + LOOP_MS_MAX, w->give_up_at);
    if (may_claim(w))
        until = MIN(until, w->claim.next_at);
    w->fds[count++] = (struct curl_waitfd){w->signal_fd, CURL_WAIT_POLLIN, 0};
    for (size_t i = 0; i < w->slot_count; i++) {
        until = MIN(until, worker_slot_due(&w->slots[i]));
        count += (unsigned)job_process_fds(&w->slots[i].process, &w->fds[count]);
    }
    curl_multi_poll(w->pool.multi, w->fds, count, (int)MAX(until - now, (int64_t)0), NULL);
}

static bool is_over(const struct worker *w, int64_t now)
{
    bool idle = !w->claim.in_flight && free_slots(w) == (int64_t)w->slot_count;
    return now >= w->give_up_at || (idle && (is_stopping(w) || w->jobs_left <= 0));
}

/* All pipes are pumped in each turn: what poll tells of them does not say that one was closed. */
static void loop(struct worker *w)
{
    for (int64_t now = now_ms(); !is_over(w, now); now = now_ms()) {
        int running;
        for (size_t i = 0; i < w->slot_count; i++)
            worker_slot_act(&w->slots[i], now);
        if (may_claim(w) && now >= w->claim.next_at)
            claim(w, now);
        wait(w, now);
        curl_multi_perform(w->pool.multi, &running);
        take_answers(w);
        now = now_ms();
        take_signals(w, now);
        for (size_t i = 0; i < w->slot_count; i++)
            worker_slot_pump(&w->slots[i], now);
    }
}

/* --- setting up --- */

/* Blocked, so that they are read here and nowhere else. */
static bool open_signals(struct worker *w)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    (void)signal(SIGCHLD, SIG_DFL); /* inherited as ignored, it would let commands end unseen */
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    w->signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    return w->signal_fd >= 0;
}

/* Started with one of the three closed, a pipe would take its place. */
static void fill_standard_fds(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

static bool worker_open(struct worker *w)
{
    fill_standard_fds();
    w->pool.multi = curl_multi_init();
    w->slots = calloc(w->slot_count, sizeof(*w->slots));
    w->fds = calloc(1 + w->slot_count * JOB_PROCESS_FDS_MAX, sizeof(*w->fds));
    reply_init(&w->claim.reply);
    buf_init(&w->claim.body, HTTP_HEAD_MAX);
    bool able = client_open(&w->claim.client, &w->pool.session->setup) && open_signals(w) &&
                w->pool.multi != NULL && w->slots != NULL && w->fds != NULL;
    for (size_t i = 0; w->slots != NULL && i < w->slot_count; i++)
        able = worker_slot_open(&w->slots[i], &w->pool) && able;
    if (!able)
        fprintf(stderr, "pawl: no memory, or no file descriptors\n");
    return able;
}

static void worker_close(struct worker *w)
{
    if (w->rc == CLI_DONE && w->slots != NULL && free_slots(w) < (int64_t)w->slot_count)
        w->rc = CLI_UNREACHABLE; /* gave up */
    for (size_t i = 0; w->slots != NULL && i < w->slot_count; i++)
        worker_slot_close(&w->slots[i]);
    if (w->claim.in_flight)
        client_cancel(&w->claim.client, w->pool.multi);
    client_close(&w->claim.client);
    reply_release(&w->claim.reply);
    buf_release(&w->claim.body);
    curl_multi_cleanup(w->pool.multi);
    if (w->signal_fd >= 0)
        (void)close(w->signal_fd);
    free(w->slots);
    free(w->fds);
}

static enum cli_exit worker(struct session *s)
{
    struct worker w = {
        .pool = {.session = s,
                 .pass_api_key = options_has(&s->opt, "pass-api-key"),
                 .lease_ms = options_number(&s->opt, "lease-ms", LEASE_MS_DEFAULT),
                 .grace_ms = options_number(&s->opt, "grace-ms", GRACE_MS_DEFAULT)},
        .slot_count = (size_t)options_number(&s->opt, "concurrency", 1),
        .signal_fd = -1,
        .give_up_at = SLOT_NEVER,
        .jobs_left = options_number(&s->opt, "max-jobs", SLOT_NEVER),
    };
    if (options_has(&s->opt, "once"))
        w.jobs_left = 1;
    if (worker_open(&w))
        loop(&w);
    else
        w.rc = CLI_REFUSED;
    worker_close(&w);
    return w.rc;
}
