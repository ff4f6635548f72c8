/* pawl job: a worker's calls, by hand. */
#include "base/limits.h"
#include "cli/commands.h"

static const char JOBS[] = "/api/v1/jobs/";

static const struct flag FLAGS_CLAIM[] = {
    {.name = "queue", .value = "Q", .help = "may be given again; default: default", .many = true},
    {.name = "max",
     .value = "N",
     .help = "jobs at most",
     .number = true,
     .min = 1,
     .max = CLAIM_MAX},
    {.name = "wait-ms",
     .value = "N",
     .help = "wait for a job, at most that long",
     .number = true,
     .max = CLAIM_WAIT_MS_MAX},
    {.name = "lease-ms",
     .value = "N",
     .help = "how long the jobs are yours",
     .number = true,
     .min = LEASE_MS_MIN,
     .max = LEASE_MS_MAX},
    {.name = "worker-id", .value = "W", .help = "default: host and process"},
    {.name = NULL},
};
static const struct flag FLAGS_COMPLETE[] = {
    {.name = "lease-token", .value = "T", .help = "as claimed", .required = true},
    {.name = "output", .value = "JSON|@FILE|-", .help = "the step's output, or an entity's answer"},
    {.name = "state", .value = "JSON|@FILE|-", .help = "an object: the run's state from now on"},
    {.name = NULL},
};
static const struct flag FLAGS_FAIL[] = {
    {.name = "lease-token", .value = "T", .help = "as claimed", .required = true},
    {.name = "code", .value = "C", .help = "what failed, for programs", .required = true},
    {.name = "message", .value = "M", .help = "what failed, for people", .required = true},
    {.name = "not-retryable", .help = "whatever the step's retry policy says"},
    {.name = NULL},
};
static const struct flag FLAGS_HEARTBEAT[] = {
    {.name = "lease-token", .value = "T", .help = "as claimed", .required = true},
    {.name = "progress", .value = "JSON|@FILE|-", .help = "how far it is, for people"},
    {.name = NULL},
};
static const struct flag FLAGS_RELEASE[] = {
    {.name = "lease-token", .value = "T", .help = "as claimed", .required = true},
    {.name = NULL},
};

static const struct column CLAIM_COLUMNS[] = {
    {"JOB", "job_id"},
    {"TENANT", "tenant"},
    {"WORKFLOW", "workflow_id"},
    {"STEP", "step"},
    {"HANDLER", "handler"},
    {"ATTEMPT", "attempt"},
    {"LEASE TOKEN", "lease_token"},
    {"EXPIRES", "lease_expires_at"},
    {"KIND", "kind"},
    {"INPUT", "input"},
};

static enum cli_exit job_claim(struct session *s);
static enum cli_exit job_show(struct session *s);
static enum cli_exit job_complete(struct session *s);
static enum cli_exit job_fail(struct session *s);
static enum cli_exit job_heartbeat(struct session *s);
static enum cli_exit job_release(struct session *s);

static const struct verb VERBS[] = {
    {.name = "claim", .about = "take jobs for a while", .flags = FLAGS_CLAIM, .run = job_claim},
    {.name = "show", .arg = "ID", .about = "one job", .run = job_show},
    {.name = "complete",
     .arg = "ID",
     .about = "hand in a claimed job's output",
     .flags = FLAGS_COMPLETE,
     .run = job_complete},
    {.name = "fail",
     .arg = "ID",
     .about = "say that a claimed job failed",
     .flags = FLAGS_FAIL,
     .run = job_fail},
    {.name = "heartbeat",
     .arg = "ID",
     .about = "keep a claimed job; exit code 1 when it is to end",
     .flags = FLAGS_HEARTBEAT,
     .run = job_heartbeat},
    {.name = "release",
     .arg = "ID",
     .about = "give a claimed job back, for others",
     .flags = FLAGS_RELEASE,
     .run = job_release},
};

const struct command COMMAND_JOB = {"job", VERBS, ARRAY_LEN(VERBS)};

static void show_claimed(struct session *s, json_t *answer)
{
    (void)s;
    struct table table;
    table_init(&table, CLAIM_COLUMNS, ARRAY_LEN(CLAIM_COLUMNS));
    table_add(&table, json_object_get(answer, "jobs"));
    if (!table_print(&table, stdout))
        fprintf(stderr, "pawl: the jobs do not fit into a table: use --json\n");
    table_release(&table);
}

static enum cli_exit job_claim(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_worker(s, &s->out);
    session_add_queues(s, &s->out);
    session_add_number(s, "max", "max");
    session_add_number(s, "wait_ms", "wait-ms");
    session_add_number(s, "lease_ms", "lease-ms");
    json_close(&s->out, '}');
    session_path(s, "/api/v1/jobs/claim", "", "");
    s->wait_ms = options_number(&s->opt, "wait-ms", 0);
    return session_call(s, "POST", show_claimed);
}

static enum cli_exit job_show(struct session *s)
{
    session_path(s, JOBS, s->arg, "");
    return session_call(s, "GET", session_show_object);
}

static void show_status(struct session *s, json_t *answer)
{
    printf("%s ", s->arg);
    value_print(stdout, json_object_get(answer, "status"));
    putchar('\n');
}

static enum cli_exit job_complete(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "lease_token", "lease-token");
    enum cli_exit rc = session_add_json(s, "output", "output");
    if (rc == CLI_DONE)
        rc = session_add_json(s, "state", "state");
    if (rc != CLI_DONE)
        return rc;
    json_close(&s->out, '}');
    session_path(s, JOBS, s->arg, "/complete");
    return session_call(s, "POST", show_status);
}

static enum cli_exit job_fail(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "lease_token", "lease-token");
    json_open(&s->out, "error", '{');
    session_add_text(s, "code", "code");
    session_add_text(s, "message", "message");
    if (options_has(&s->opt, "not-retryable"))
        json_add_bool(&s->out, "retryable", false);
    json_close(&s->out, '}');
    json_close(&s->out, '}');
    session_path(s, JOBS, s->arg, "/fail");
    return session_call(s, "POST", show_status);
}

static void show_lease(struct session *s, json_t *answer)
{
    if (json_is_true(json_object_get(answer, "cancel_requested"))) {
        printf("%s is cancelled\n", s->arg);
        return;
    }
    printf("%s is yours until ", s->arg);
    value_print(stdout, json_object_get(answer, "lease_expires_at"));
    putchar('\n');
}

static enum cli_exit job_heartbeat(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "lease_token", "lease-token");
    enum cli_exit rc = session_add_json(s, "progress", "progress");
    if (rc != CLI_DONE)
        return rc;
    json_close(&s->out, '}');
    session_path(s, JOBS, s->arg, "/heartbeat");
    rc = session_call(s, "POST", show_lease);
    if (rc == CLI_DONE && json_is_true(json_object_get(s->answer, "cancel_requested")))
        rc = CLI_REFUSED;
    return rc;
}

static enum cli_exit job_release(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "lease_token", "lease-token");
    json_close(&s->out, '}');
    session_path(s, JOBS, s->arg, "/release");
    return session_call(s, "POST", show_status);
}
