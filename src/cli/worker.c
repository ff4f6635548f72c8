/* pawl worker: runs a command for each job of some queues.
 *
 * One loop and no threads: requests are made beside each other on one multi handle, commands are
 * watched through their pipes. There is a hand for each job that may be worked on at a time. A job
 * that was claimed and not heard of comes back when its lease ends, so that claims carry no key. */
#include "base/env.h"
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/hand.h"

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
    LET_GO_PATIENCE_MS = 5 * 1000, /* after the second signal: somebody wants us gone */
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
    struct crew crew;
    struct hand *hands;
    size_t hand_count;
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
        bool under_way;
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

static int64_t free_hands(const struct worker *w)
{
    int64_t count = 0;
    for (size_t i = 0; i < w->hand_count; i++)
        count += hand_is_free(&w->hands[i]);
    return count;
}

static bool may_claim(const struct worker *w)
{
    return !is_stopping(w) && w->jobs_left > 0 && !w->claim.under_way && free_hands(w) > 0;
}

static void claim(struct worker *w, int64_t now)
{
    struct json_out out = json_out_to(&w->claim.body);
    buf_clear(&w->claim.body);
    json_open(&out, NULL, '{');
    session_add_worker(w->crew.session, &out);
    session_add_queues(w->crew.session, &out);
    json_add_int(&out, "max", MIN(free_hands(w), w->jobs_left));
    json_add_int(&out, "wait_ms", CLAIM_WAIT_MS);
    json_add_int(&out, "lease_ms", w->crew.lease_ms);
    json_close(&out, '}');
    struct request req = {.method = "POST",
                          .path = STR("/api/v1/jobs/claim"),
                          .body = buf_str(&w->claim.body),
                          .wait_ms = CLAIM_WAIT_MS};
    w->claim.called_at = now;
    w->claim.under_way = client_begin(&w->claim.client, w->crew.multi, &req, &w->claim.reply);
    if (!w->claim.under_way)
        w->claim.next_at = now + hand_backoff_ms(w->claim.tries++);
}

/* One that cannot be started now may be later; one that does not exist stops the worker. */
static void note_start_failure(struct worker *w, int64_t now)
{
    int failure = w->crew.start_failure;
    if (failure == 0)
        return;
    fprintf(stderr, "pawl: cannot run %s: %s\n", w->crew.session->opt.command[0],
            strerror(failure));
    if (failure == ENOENT || failure == EACCES || failure == ENOTDIR || failure == ENOEXEC)
        w->rc = CLI_REFUSED;
    w->claim.next_at = now + CLAIM_PAUSE_MS;
    w->crew.start_failure = 0;
}

static void hand_out(struct worker *w, int64_t now)
{
    size_t i;
    json_t *job;
    json_t *body = answer_json(&w->claim.reply);
    json_t *jobs = json_object_get(body, "jobs");
    struct hand *h = w->hands;
    int64_t took_ms = now - w->claim.called_at;
    bool late = took_ms > CLAIM_WAIT_MS + w->crew.lease_ms / 2;
    w->claim.next_at = now;
    /* A server that does not wait is on its way down. */
    if (json_array_size(jobs) == 0 && took_ms < CLAIM_WAIT_MS / 2)
        w->claim.next_at = now + CLAIM_EMPTY_PAUSE_MS;
    json_array_foreach (jobs, i, job) {
        while (h < w->hands + w->hand_count && !hand_is_free(h))
            h++;
        if (h == w->hands + w->hand_count)
            break; /* more than we asked for */
        w->jobs_left--;
        if (is_stopping(w))
            hand_return(h, job, now);
        else
            hand_take(h, job, late, now);
        note_start_failure(w, now);
    }
    json_decref(body);
}

static void claim_answered(struct worker *w, enum cli_exit rc, int64_t now)
{
    w->claim.under_way = false;
    if (rc == CLI_USAGE) { /* the URL is none */
        fprintf(stderr, "pawl: %s\n", w->claim.client.error);
        w->rc = rc;
        return;
    }
    enum answer answer = crew_judge(&w->crew, &w->claim.client, rc);
    if (answer == ANSWER_LATER) {
        w->claim.next_at = now + hand_backoff_ms(w->claim.tries++);
        return;
    }
    w->claim.tries = 0;
    if (answer == ANSWER_TAKEN) {
        hand_out(w, now);
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
        w->give_up_at = now + LET_GO_PATIENCE_MS;
        for (size_t i = 0; i < w->hand_count; i++)
            hand_let_go(&w->hands[i], now);
    }
}

/* --- the loop --- */

static void take_answers(struct worker *w)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(w->crew.multi, &left)) != NULL) {
        struct client *c = NULL;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &c);
        enum cli_exit rc = client_end(c, w->crew.multi, code);
        if (c == &w->claim.client)
            claim_answered(w, rc, now_ms());
        else
            hand_answered(CONTAINER_OF(c, struct hand, client), rc, now_ms());
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
    for (size_t i = 0; i < w->hand_count; i++) {
        until = MIN(until, hand_due(&w->hands[i]));
        count += (unsigned)child_fds(&w->hands[i].child, &w->fds[count]);
    }
    curl_multi_poll(w->crew.multi, w->fds, count, (int)MAX(until - now, (int64_t)0), NULL);
}

static bool is_over(const struct worker *w, int64_t now)
{
    bool idle = !w->claim.under_way && free_hands(w) == (int64_t)w->hand_count;
    return now >= w->give_up_at || (idle && (is_stopping(w) || w->jobs_left <= 0));
}

/* All pipes are pumped in each turn: what poll tells of them does not say that one was closed. */
static void loop(struct worker *w)
{
    for (int64_t now = now_ms(); !is_over(w, now); now = now_ms()) {
        int running;
        for (size_t i = 0; i < w->hand_count; i++)
            hand_act(&w->hands[i], now);
        if (may_claim(w) && now >= w->claim.next_at)
            claim(w, now);
        wait(w, now);
        curl_multi_perform(w->crew.multi, &running);
        take_answers(w);
        now = now_ms();
        take_signals(w, now);
        for (size_t i = 0; i < w->hand_count; i++)
            hand_pump(&w->hands[i], now);
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
    w->crew.multi = curl_multi_init();
    w->hands = calloc(w->hand_count, sizeof(*w->hands));
    w->fds = calloc(1 + w->hand_count * CHILD_FDS_MAX, sizeof(*w->fds));
    reply_init(&w->claim.reply);
    buf_init(&w->claim.body, HTTP_HEAD_MAX);
    bool able = client_open(&w->claim.client, &w->crew.session->setup) && open_signals(w) &&
                w->crew.multi != NULL && w->hands != NULL && w->fds != NULL;
    for (size_t i = 0; w->hands != NULL && i < w->hand_count; i++)
        able = hand_open(&w->hands[i], &w->crew) && able;
    if (!able)
        fprintf(stderr, "pawl: no memory, or no file descriptors\n");
    return able;
}

static void worker_close(struct worker *w)
{
    if (w->rc == CLI_DONE && w->hands != NULL && free_hands(w) < (int64_t)w->hand_count)
        w->rc = CLI_UNREACHABLE; /* gave up */
    for (size_t i = 0; w->hands != NULL && i < w->hand_count; i++)
        hand_close(&w->hands[i]);
    if (w->claim.under_way)
        client_break_off(&w->claim.client, w->crew.multi);
    client_close(&w->claim.client);
    reply_release(&w->claim.reply);
    buf_release(&w->claim.body);
    curl_multi_cleanup(w->crew.multi);
    if (w->signal_fd >= 0)
        (void)close(w->signal_fd);
    free(w->hands);
    free(w->fds);
}

static enum cli_exit worker(struct session *s)
{
    struct worker w = {
        .crew = {.session = s,
                 .pass_api_key = options_has(&s->opt, "pass-api-key"),
                 .lease_ms = options_number(&s->opt, "lease-ms", LEASE_MS_DEFAULT),
                 .grace_ms = options_number(&s->opt, "grace-ms", GRACE_MS_DEFAULT)},
        .hand_count = (size_t)options_number(&s->opt, "concurrency", 1),
        .signal_fd = -1,
        .give_up_at = HAND_NEVER,
        .jobs_left = options_number(&s->opt, "max-jobs", HAND_NEVER),
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
