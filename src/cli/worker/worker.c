/* pawl worker: runs a command for each job of one or more queues.
 *
 * One loop and no threads: requests run in parallel on one multi handle, and commands are watched
 * through their pipes. There is one slot for each job that may run at a time. Claims carry no
 * idempotency key: when an answer is lost, the job comes back when its lease expires. */
#include "base/env.h"
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/worker/worker_slot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    CLAIM_WAIT_MS = 1000,       /* a stop may take this long too */
    CLAIM_PAUSE_MS = 1000,      /* after a command that could not be started */
    CLAIM_EMPTY_PAUSE_MS = 200, /* after an empty answer that did not wait */
    GRACE_MS_MAX = 60 * 60 * 1000,
    ABORT_MS_MAX = 5 * 1000, /* after the second signal */
    LOOP_MS_MAX = 60 * 1000,
};

static const struct option OPTIONS[] = {
    {.name = "queue",
     .value = "QUEUE",
     .help = "Work on the jobs of this queue",
     .required = true,
     .many = true},
    {.name = "concurrency",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .max = CLAIM_MAX,
     .fallback = "1",
     .help = "How many commands run at a time"},
    {.name = "lease-ms",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = LEASE_MS_MIN,
     .max = LEASE_MS_MAX,
     .unit = "milliseconds",
     .fallback = "30000",
     .help = "How long a job stays ours without a heartbeat"},
    {.name = "grace-ms",
     .kind = OPTION_NUMBER,
     .value = "N",
     .max = GRACE_MS_MAX,
     .unit = "milliseconds",
     .fallback = "10000",
     .help = "How long after SIGTERM a command gets SIGKILL"},
    {.name = "worker-id",
     .value = "ID",
     .help = "The worker's name (default: host name and process id)"},
    {.name = "pass-api-key",
     .kind = OPTION_SWITCH,
     .help = "Pass PAWL_API_KEY to commands, so that they can call the server"},
    {.name = "once", .kind = OPTION_SWITCH, .help = "Stop after one job"},
    {.name = "max-jobs",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .help = "Stop after this many jobs"},
    {.name = NULL},
};

/* Lines as wide as a terminal. */
/* clang-format off */
static const char NOTES[] =
    "The command reads the job's input from standard input, as one line of JSON. Its exit code decides:\n"
    "  0      The job is completed. Standard output is the job's output: JSON as it is, other text as\n"
    "         {\"text\": ...}, nothing as null.\n"
    "  65     The job fails with the code EXIT_65 and is not retried: its input is wrong.\n"
    "  other  The job fails with the code EXIT_<n>, or SIGNAL_<n> if a signal ended the command, and is\n"
    "         retried as the step's retry policy says. The usual code is 75.\n"
    "The end of standard error becomes the error message. If the output is larger than 512 KiB, the\n"
    "command is stopped and the job fails with OUTPUT_TOO_LARGE. Output that is not UTF-8 fails with\n"
    "OUTPUT_NOT_UTF8; a NUL byte, or JSON that pawl does not accept (such as a member name twice in an\n"
    "object), fails with OUTPUT_INVALID.\n"
    "\n"
    "The command finds in its environment: PAWL_JOB_ID, PAWL_IDEMPOTENCY_KEY (the same in every attempt),\n"
    "PAWL_KIND (step or entity), PAWL_RUN_ID, PAWL_WORKFLOW_ID and PAWL_STEP (empty for an entity),\n"
    "PAWL_HANDLER, PAWL_ATTEMPT, PAWL_TENANT and PAWL_URL. Some jobs also have PAWL_ITEM (the index in\n"
    "for_each, from 0), PAWL_COMPENSATES (1), TRACEPARENT and TRACESTATE. PAWL_API_KEY is passed only with\n"
    "--pass-api-key, PAWL_ROOT_KEY never.\n"
    "\n"
    "For an entity, the input is {\"kind\", \"entity\", \"state\", \"signals\", \"timers\", ...} and the output must\n"
    "be {\"state\", \"set_timers\"?, ...}; see docs/entities.md. Any other output fails the call, which is\n"
    "retried.\n"
    "\n"
    "The worker sends heartbeats. When a job is cancelled or its lease is lost, the command's process group\n"
    "gets SIGTERM, then SIGKILL after --grace-ms, and the worker reports nothing. When a command ends, the\n"
    "processes that it left in its group are killed. When the worker dies, its commands are killed.\n"
    "\n"
    "The worker prints a line for each job that has ended. On SIGTERM or SIGINT it claims no more jobs and\n"
    "finishes the current ones. On a second signal it kills the commands and gives their jobs back.\n";
/* clang-format on */

static enum cli_exit worker(struct session *s);

static const struct verb VERBS[] = {
    {.about = "Run a command for each job of a queue",
     .command = "COMMAND [ARG...]",
     .notes = NOTES,
     .options = OPTIONS,
     .run = worker},
};

const struct command COMMAND_WORKER = {"worker", "Run a command for each job of a queue", VERBS,
                                       ARRAY_LEN(VERBS)};

static_assert(LEASE_MS_DEFAULT == 30000, "as the option says");

struct worker {
    struct worker_pool pool;
    struct worker_slot *slots;
    size_t slot_count;
    struct curl_waitfd *fds;
    int signal_fd;
    int signals;        /* stop signals so far */
    int64_t give_up_at; /* after the second signal */
    int64_t jobs_left;  /* that may still start */
    enum cli_exit rc;   /* not CLI_DONE: the worker stops */
    struct {
        struct client client;
        struct reply reply;
        struct buf body;
        bool in_flight;
        int64_t called_at;
        int64_t next_at;
        int tries; /* without an answer, in a row */
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

/* A command that cannot start now may start later; one that does not exist stops the worker. */
static void note_start_failure(struct worker *w, int64_t now)
{
    int failure = w->pool.start_failure;
    if (failure == 0)
        return;
    fprintf(stderr, "pawl: Cannot run %s: %s\n", w->pool.session->opt.argv[0], strerror(failure));
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
    /* A server that does not wait is shutting down. */
    if (json_array_size(jobs) == 0 && took_ms < CLAIM_WAIT_MS / 2)
        w->claim.next_at = now + CLAIM_EMPTY_PAUSE_MS;
    json_array_foreach (jobs, i, job) {
        while (slot < w->slots + w->slot_count && !worker_slot_is_free(slot))
            slot++;
        if (slot == w->slots + w->slot_count)
            break; /* more jobs than we asked for */
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
    if (rc == CLI_USAGE) { /* the URL is not valid */
        client_print_error(&w->claim.client, "");
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

/* The first signal stops claims, the second stops everything. */
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

/* Pumps all pipes in each turn: poll does not report every pipe that was closed. */
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

/* Blocks the signals, so that only signal_fd gets them. */
static bool open_signals(struct worker *w)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    (void)signal(SIGCHLD, SIG_DFL); /* if inherited as ignored, exits of commands would be lost */
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    w->signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    return w->signal_fd >= 0;
}

/* If one of the three is closed, a pipe would get its number. */
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
        fprintf(stderr, "pawl: Out of memory or file descriptors\n");
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
                 .lease_ms = options_number(&s->opt, "lease-ms", 0),
                 .grace_ms = options_number(&s->opt, "grace-ms", 0)},
        .slot_count = (size_t)options_number(&s->opt, "concurrency", 0),
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
