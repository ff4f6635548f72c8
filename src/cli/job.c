/* pawl job: the calls of a worker, one at a time. */
#include "base/limits.h"
#include "cli/commands.h"

static const char JOBS[] = "/api/v1/jobs/";

#define LEASE_TOKEN_OPTION                                                                         \
    {                                                                                              \
        .name = "lease-token", .value = "TOKEN", .help = "From `pawl job claim`", .required = true \
    }

static const struct option OPTIONS_CLAIM[] = {
    {.name = "queue",
     .value = "QUEUE",
     .help = "Claim from this queue (default: the queue \"default\")",
     .many = true},
    {.name = "max",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .max = CLAIM_MAX,
     .help = "Claim at most this many jobs"},
    {.name = "wait-ms",
     .kind = OPTION_NUMBER,
     .value = "N",
     .max = CLAIM_WAIT_MS_MAX,
     .unit = "milliseconds",
     .help = "Wait for a job, for at most this long"},
    {.name = "lease-ms",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = LEASE_MS_MIN,
     .max = LEASE_MS_MAX,
     .unit = "milliseconds",
     .help = "How long the jobs stay yours without a heartbeat"},
    {.name = "worker-id", .value = "ID", .help = "Your name (default: host name and process id)"},
    {.name = NULL},
};
static const struct option OPTIONS_COMPLETE[] = {
    LEASE_TOKEN_OPTION,
    {.name = "output",
     .value = "JSON|@FILE|-",
     .help = "The output of the step, or the answer of an entity's handler"},
    {.name = "state", .value = "JSON|@FILE|-", .help = "The run's new state: a JSON object"},
    {.name = NULL},
};
static const struct option OPTIONS_FAIL[] = {
    LEASE_TOKEN_OPTION,
    {.name = "code", .value = "CODE", .help = "The error code, for programs", .required = true},
    {.name = "message", .value = "TEXT", .help = "The error, for people", .required = true},
    {.name = "not-retryable",
     .kind = OPTION_SWITCH,
     .help = "Do not retry, whatever the step's retry policy says"},
    {.name = NULL},
};
static const struct option OPTIONS_HEARTBEAT[] = {
    LEASE_TOKEN_OPTION,
    {.name = "progress", .value = "JSON|@FILE|-", .help = "The progress so far, for people"},
    {.name = NULL},
};
static const struct option OPTIONS_RELEASE[] = {LEASE_TOKEN_OPTION, {.name = NULL}};
static const struct option OPTIONS_CHECKPOINT[] = {
    LEASE_TOKEN_OPTION,
    {.name = "output", .value = "JSON|@FILE|-", .help = "The result (default: null)"},
    {.name = NULL},
};
static const struct option OPTIONS_SUSPEND[] = {
    LEASE_TOKEN_OPTION,
    {.name = "until", .value = "TIME", .help = "Until this time, as 2026-01-31T12:00:00Z"},
    {.name = "signal", .value = "NAME", .help = "Until the run gets this signal"},
    {.name = "approval",
     .value = "JSON|@FILE|-",
     .help = "Until a person has decided this question, as {\"prompt\":\"Refund?\"}"},
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
static enum cli_exit job_checkpoint(struct session *s);
static enum cli_exit job_suspend(struct session *s);

static const struct verb VERBS[] = {
    {.name = "claim",
     .about = "Claim jobs, each under a lease",
     .options = OPTIONS_CLAIM,
     .run = job_claim},
    {.name = "show", .arguments = "ID", .about = "Show a job", .run = job_show},
    {.name = "complete",
     .arguments = "ID",
     .about = "Complete a claimed job with its output",
     .options = OPTIONS_COMPLETE,
     .run = job_complete},
    {.name = "fail",
     .arguments = "ID",
     .about = "Report that a claimed job failed",
     .options = OPTIONS_FAIL,
     .run = job_fail},
    {.name = "heartbeat",
     .arguments = "ID",
     .about = "Extend the lease of a claimed job; exit code 1 if the job is cancelled",
     .options = OPTIONS_HEARTBEAT,
     .run = job_heartbeat},
    {.name = "release",
     .arguments = "ID",
     .about = "Give a claimed job back, for other workers",
     .options = OPTIONS_RELEASE,
     .run = job_release},
    {.name = "checkpoint",
     .arguments = "ID NAME",
     .about = "Store a finished part of a claimed job; the first result under a name stays",
     .options = OPTIONS_CHECKPOINT,
     .run = job_checkpoint},
    {.name = "suspend",
     .arguments = "ID",
     .about = "Give a claimed job up until a time, a signal or a decision has come",
     .options = OPTIONS_SUSPEND,
     .run = job_suspend},
};

const struct command COMMAND_JOB = {"job", "Claim and complete single jobs, as a worker does",
                                    VERBS, ARRAY_LEN(VERBS)};

static void show_claimed(struct session *s, json_t *answer)
{
    (void)s;
    rows_print(stdout, CLAIM_COLUMNS, ARRAY_LEN(CLAIM_COLUMNS), json_object_get(answer, "jobs"));
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
    session_path(s, JOBS, s->args[0], "");
    return session_call(s, "GET", session_show_object);
}

static void show_status(struct session *s, json_t *answer)
{
    printf("%s ", s->args[0]);
    value_print(stdout, json_object_get(answer, "status"));
    putchar('\n');
}

static enum cli_exit job_complete(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "lease_token", "lease-token");
    enum cli_exit rc = session_add_json(s, "output", "output");
    if (rc != CLI_DONE)
        return rc;
    rc = session_add_json(s, "state", "state");
    if (rc != CLI_DONE)
        return rc;
    json_close(&s->out, '}');
    session_path(s, JOBS, s->args[0], "/complete");
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
    session_path(s, JOBS, s->args[0], "/fail");
    return session_call(s, "POST", show_status);
}

static void show_lease(struct session *s, json_t *answer)
{
    if (json_is_true(json_object_get(answer, "cancel_requested"))) {
        printf("%s is cancelled\n", s->args[0]);
        return;
    }
    printf("%s is yours until ", s->args[0]);
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
    session_path(s, JOBS, s->args[0], "/heartbeat");
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
    session_path(s, JOBS, s->args[0], "/release");
    return session_call(s, "POST", show_status);
}

static enum cli_exit job_checkpoint(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "lease_token", "lease-token");
    json_add_text(&s->out, "name", str_of(s->args[1]));
    enum cli_exit rc = session_add_json(s, "output", "output");
    if (rc != CLI_DONE)
        return rc;
    json_close(&s->out, '}');
    session_path(s, JOBS, s->args[0], "/checkpoints");
    return session_call(s, "POST", show_status);
}

static enum cli_exit job_suspend(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "lease_token", "lease-token");
    session_add_text(s, "until", "until");
    session_add_text(s, "signal", "signal");
    enum cli_exit rc = session_add_json(s, "approval", "approval");
    if (rc != CLI_DONE)
        return rc;
    json_close(&s->out, '}');
    session_path(s, JOBS, s->args[0], "/suspend");
    return session_call(s, "POST", show_status);
}
