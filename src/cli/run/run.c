/* pawl run: starts, shows and controls runs. */
#include "base/env.h"
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/names.h"
#include "cli/run/run_verbs.h"

enum { WAIT_MS_MAX = 7 * 24 * 3600 * 1000, WAIT_POLL_MS = 500 };

static const struct option OPTIONS_START[] = {
    {.name = "input", .value = "JSON|@FILE|-", .help = "The run's input: any JSON value"},
    {.name = "label", .value = "KEY=VALUE", .help = "Label the run", .many = true},
    {.name = "priority",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = PRIORITY_MIN,
     .max = PRIORITY_MAX,
     .help = "Runs with a higher priority leave the queue first and get workers first"},
    {.name = "at-limit",
     .kind = OPTION_CHOICE,
     .value = "POLICY",
     .choices = "reject|queue|cancel_oldest|coalesce",
     .help = "What to do when a limit is reached; by default the workflow or the tenant decides"},
    {.name = "start-at", .value = "TIME", .help = "Start at this time (RFC 3339) instead of now"},
    {.name = "wait-ms",
     .kind = OPTION_NUMBER,
     .value = "N",
     .max = WAIT_MS_MAX,
     .unit = "milliseconds",
     .help = "Wait until the run has ended, for at most this long; exit code 0 if it succeeded"},
    {.name = NULL},
};

static const struct option OPTIONS_LIST[] = {
    RUN_FILTER_OPTIONS, SESSION_PAGE_OPTIONS, {.name = NULL}};
static const struct option OPTIONS_SHOW[] = {
    {.name = "events", .kind = OPTION_SWITCH, .help = "Show the timeline too"},
    {.name = NULL},
};

#define IF_VERSION_OPTION                                                           \
    {                                                                               \
        .name = "if-version", .kind = OPTION_NUMBER, .value = "N",                  \
        .help = "Only if the run's version is still N: nobody has changed it since" \
    }

static const struct option OPTIONS_CANCEL[] = {
    {.name = "reason", .value = "TEXT", .help = "The reason, for the run's timeline"},
    IF_VERSION_OPTION,
    {.name = NULL},
};
static const struct option OPTIONS_CONTROL[] = {IF_VERSION_OPTION, {.name = NULL}};
static const struct option OPTIONS_RERUN[] = {
    {.name = "from",
     .value = "STEP",
     .help = "Repeat this step and all that depend on it; keep the results of the others"},
    IF_VERSION_OPTION,
    {.name = NULL},
};
static const struct option OPTIONS_SIGNAL[] = {
    {.name = "payload", .value = "JSON|@FILE|-", .help = "Data for the step that waits"},
    {.name = "dedup-key", .value = "KEY", .help = "Signals with the same key count once"},
    IF_VERSION_OPTION,
    {.name = NULL},
};

static const struct column LIST_COLUMNS[] = {
    {"ID", "id"},         {"WORKFLOW", "workflow_id"}, {"VERSION", "workflow_version"},
    {"STATUS", "status"}, {"CREATED", "created_at"},   {"FINISHED", "finished_at"},
    {"LABELS", "labels"},
};

static enum cli_exit run_start(struct session *s);
static enum cli_exit run_list(struct session *s);
static enum cli_exit run_cancel(struct session *s);
static enum cli_exit run_pause(struct session *s);
static enum cli_exit run_resume(struct session *s);
static enum cli_exit run_retry(struct session *s);
static enum cli_exit run_rerun(struct session *s);
static enum cli_exit run_signal(struct session *s);

static const struct verb VERBS[] = {
    {.name = "start",
     .arguments = "WORKFLOW",
     .about = "Start a run; safe to repeat with --idempotency-key",
     .options = OPTIONS_START,
     .run = run_start},
    {.name = "list", .about = "List runs, newest first", .options = OPTIONS_LIST, .run = run_list},
    {.name = "show",
     .arguments = "ID",
     .ids = &IDS_OF_RUNS,
     .about = "Show a run and its steps",
     .options = OPTIONS_SHOW,
     .run = run_show},
    {.name = "why",
     .arguments = "ID",
     .ids = &IDS_OF_RUNS,
     .about = "Explain what a run waits for: limits and their holders, workers, timers",
     .run = run_why},
    {.name = "watch",
     .arguments = "ID",
     .ids = &IDS_OF_RUNS,
     .about = "Follow a run until it ends; exit code 0 if it succeeds",
     .notes = "On a terminal it draws the run as a tree, with attempts, durations and "
              "compensation, and redraws it as the run moves on. Elsewhere it prints a line for "
              "each event of the timeline; with --json, the events themselves.",
     .run = run_watch},
    {.name = "cancel",
     .arguments = "ID",
     .ids = &IDS_OF_RUNS,
     .about = "Cancel a run",
     .options = OPTIONS_CANCEL,
     .run = run_cancel},
    {.name = "pause",
     .arguments = "ID",
     .ids = &IDS_OF_RUNS,
     .about = "Pause a run",
     .notes = "Steps that have started run to their end; no further step starts.\n",
     .options = OPTIONS_CONTROL,
     .run = run_pause},
    {.name = "resume",
     .arguments = "ID",
     .ids = &IDS_OF_RUNS,
     .about = "Resume a paused run",
     .options = OPTIONS_CONTROL,
     .run = run_resume},
    {.name = "retry",
     .arguments = "ID",
     .ids = &IDS_OF_RUNS,
     .about = "Retry the failed steps of a run",
     .options = OPTIONS_CONTROL,
     .run = run_retry},
    {.name = "rerun",
     .arguments = "ID",
     .ids = &IDS_OF_RUNS,
     .about = "Start a new run with the same input",
     .options = OPTIONS_RERUN,
     .run = run_rerun},
    {.name = "signal",
     .arguments = "ID NAME",
     .ids = &IDS_OF_RUNS,
     .about = "Send a signal to a run",
     .notes = "A step that waits for the signal continues. If none waits yet, the run keeps the "
              "signal.\n",
     .options = OPTIONS_SIGNAL,
     .run = run_signal},
    {.name = "bulk",
     .arguments = "ACTION",
     .about = "Cancel, pause, resume or retry all runs that match a filter",
     .options = OPTIONS_RUN_BULK,
     .run = run_bulk},
};

const struct command COMMAND_RUN = {"run", "Start and control runs", VERBS, ARRAY_LEN(VERBS)};

/* --- start --- */

static enum cli_exit add_labels(struct session *s)
{
    size_t at = 0;
    const char *label = options_next(&s->opt, "label", &at);
    if (label == NULL)
        return CLI_DONE;
    json_t *labels = json_object();
    for (; label != NULL; label = options_next(&s->opt, "label", &at)) {
        struct str name, value;
        if (!str_cut(str_of(label), '=', &name, &value) || name.len == 0 ||
            json_object_setn_new(labels, name.ptr, name.len, json_stringn(value.ptr, value.len)) !=
                0) {
            fprintf(stderr, "pawl: --label must be KEY=VALUE in UTF-8, not \"%s\"\n", label);
            json_decref(labels);
            return CLI_USAGE;
        }
    }
    struct buf text;
    buf_init(&text, HTTP_BODY_MAX);
    json_put_plain(&text, labels);
    json_add_raw(&s->out, "labels", buf_str(&text));
    buf_release(&text);
    json_decref(labels);
    return CLI_DONE;
}

/* On one line, in the memory of the request's body. */
static const char *plain_json(struct session *s, const json_t *value)
{
    buf_clear(&s->body);
    json_put_plain(&s->body, value);
    return buf_ok(&s->body) ? s->body.ptr : "{}";
}

static void show_started(struct session *s, json_t *answer)
{
    json_t *run = json_object_get(answer, "run");
    bool coalesced = json_is_true(json_object_get(answer, "coalesced"));
    value_print(stdout, json_object_get(answer, "run_id"));
    fputs(s->reply.replayed ? "  replayed  " : coalesced ? "  coalesced  " : "  created  ", stdout);
    value_print(stdout, json_object_get(run, "status"));
    fputc('\n', stdout);
    static const char *const ENDS[] = {"output", "error"};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        json_t *value = json_object_get(run, ENDS[i]);
        if (value == NULL || json_is_null(value))
            continue;
        printf("%s  ", ENDS[i]);
        value_print(stdout, value);
        fputc('\n', stdout);
    }
}

static const char *status_of(const json_t *answer)
{
    const json_t *run = json_object_get(answer, "run");
    const char *status = json_string_value(json_object_get(run, "status"));
    return status != NULL ? status : "";
}

/* Looks at the run until it has ended or the time is over, and puts it into the answer of its
 * start. The server itself waits no longer than RUN_WAIT_MS_MAX. */
static enum cli_exit wait_on(struct session *s, json_t *started, int64_t until_ms)
{
    const char *id = json_string_value(json_object_get(started, "run_id"));
    enum cli_exit rc = CLI_DONE;
    while (rc == CLI_DONE && id != NULL && !run_status_is_end(status_of(started)) &&
           env_mono_ms(&ENV_SYSTEM) < until_ms) {
        client_pause(WAIT_POLL_MS);
        session_path(s, RUN_PATH, id, "");
        rc = session_call_silently(s, "GET");
        if (rc == CLI_DONE)
            (void)json_object_set(started, "run", s->answer);
    }
    return rc;
}

/* A run that was waited for must have succeeded. */
static enum cli_exit judge(const json_t *started)
{
    const char *status = status_of(started);
    if (strcmp(status, "succeeded") == 0)
        return CLI_DONE;
    if (!run_status_is_end(status))
        fprintf(stderr, "pawl: The run has not ended yet. Follow it with `pawl run watch %s`\n",
                json_string_value(json_object_get(started, "run_id")));
    return CLI_REFUSED;
}

static enum cli_exit start_and_wait(struct session *s, int64_t wait_ms)
{
    char first_wait[24];
    int64_t until_ms = env_mono_ms(&ENV_SYSTEM) + wait_ms;
    s->wait_ms = MIN(wait_ms, (int64_t)RUN_WAIT_MS_MAX);
    (void)snprintf(first_wait, sizeof(first_wait), "%lld", (long long)s->wait_ms);
    session_path(s, "/api/v1/workflows/", s->args[0], "/runs");
    session_query(s, "wait_ms", wait_ms > 0 ? first_wait : NULL);
    if (wait_ms <= RUN_WAIT_MS_MAX) {
        enum cli_exit rc = session_call(s, "POST", show_started);
        return rc == CLI_DONE && wait_ms > 0 ? judge(s->answer) : rc;
    }
    enum cli_exit rc = session_call_silently(s, "POST");
    if (rc != CLI_DONE)
        return rc;
    bool replayed = s->reply.replayed;
    json_t *started = json_incref(s->answer);
    s->wait_ms = 0;
    rc = wait_on(s, started, until_ms);
    s->reply.replayed = replayed;
    if (rc == CLI_DONE && s->json)
        printf("%s\n", plain_json(s, started));
    else if (rc == CLI_DONE)
        show_started(s, started);
    rc = rc == CLI_DONE ? judge(started) : rc;
    json_decref(started);
    return rc;
}

static enum cli_exit run_start(struct session *s)
{
    json_open(&s->out, NULL, '{');
    enum cli_exit rc = session_add_json(s, "input", "input");
    if (rc != CLI_DONE)
        return rc;
    rc = add_labels(s);
    if (rc != CLI_DONE)
        return rc;
    session_add_number(s, "priority", "priority");
    session_add_text(s, "at_limit", "at-limit");
    session_add_text(s, "start_at", "start-at");
    json_close(&s->out, '}');
    return start_and_wait(s, options_number(&s->opt, "wait-ms", 0));
}

/* --- read --- */

static enum cli_exit run_list(struct session *s)
{
    session_path(s, "/api/v1/runs", "", "");
    bool ok = true;
    for (size_t i = 0; i < RUN_FILTER_COUNT && ok; i++) {
        char room[TEXT_MAX];
        const char *value = run_filter_value(s, i, room, sizeof(room), &ok);
        session_query(s, RUN_FILTER[i].member, value);
    }
    if (!ok)
        return CLI_USAGE;
    return session_pages(s, LIST_COLUMNS, ARRAY_LEN(LIST_COLUMNS));
}

/* --- control --- */

static void show_status(struct session *s, json_t *answer)
{
    printf("%s ", s->args[0]);
    value_print(stdout, json_object_get(answer, "status"));
    putchar('\n');
}

/* POSTs the body, under --if-version. */
static enum cli_exit control(struct session *s, const char *action,
                             void (*show)(struct session *s, json_t *answer))
{
    char quoted[32];
    if (options_has(&s->opt, "if-version")) {
        (void)snprintf(quoted, sizeof(quoted), "\"%s\"", options_text(&s->opt, "if-version"));
        s->if_match = quoted;
    }
    session_path(s, RUN_PATH, s->args[0], action);
    enum cli_exit rc = session_call(s, "POST", show);
    s->if_match = NULL;
    return rc;
}

static enum cli_exit run_cancel(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "reason", "reason");
    json_close(&s->out, '}');
    return control(s, "/cancel", show_status);
}

static enum cli_exit run_pause(struct session *s)
{
    return control(s, "/pause", show_status);
}

static enum cli_exit run_resume(struct session *s)
{
    return control(s, "/resume", show_status);
}

static enum cli_exit run_retry(struct session *s)
{
    return control(s, "/retry", show_status);
}

static enum cli_exit run_rerun(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "from_step", "from");
    json_close(&s->out, '}');
    return control(s, "/rerun", show_started);
}

static void show_signal(struct session *s, json_t *answer)
{
    printf("%s ", s->args[1]);
    fputs(json_is_true(json_object_get(answer, "duplicate")) ? "already received; the run is "
                                                             : "received; the run is ",
          stdout);
    value_print(stdout, json_object_get(answer, "run_status"));
    putchar('\n');
}

static enum cli_exit run_signal(struct session *s)
{
    json_open(&s->out, NULL, '{');
    json_add_text(&s->out, "name", str_of(s->args[1]));
    enum cli_exit rc = session_add_json(s, "payload", "payload");
    if (rc != CLI_DONE)
        return rc;
    session_add_text(s, "dedup_key", "dedup-key");
    json_close(&s->out, '}');
    return control(s, "/signals", show_signal);
}
