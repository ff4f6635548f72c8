/* pawl run: starting runs, looking at them, asking why they wait, ending them. */
#include "base/limits.h"
#include "cli/commands.h"

static const char RUNS[] = "/api/v1/runs/";

static const struct flag FLAGS_START[] = {
    {.name = "input", .value = "JSON|@FILE|-", .help = "the run's input, any JSON value"},
    {.name = "label", .value = "K=V", .help = "a label; may be given again", .many = true},
    {.name = "priority",
     .value = "N",
     .help = "higher ones leave the queue first, and are worked on first",
     .number = true,
     .min = PRIORITY_MIN,
     .max = PRIORITY_MAX},
    {.name = "at-limit",
     .value = "POLICY",
     .help =
         "at a limit: reject, queue, cancel_oldest or coalesce (as the workflow or tenant says)"},
    {.name = "wait-ms",
     .value = "N",
     .help = "wait for its end, at most that long",
     .number = true,
     .max = RUN_WAIT_MS_MAX},
    {.name = NULL},
};
static const struct flag FLAGS_LIST[] = {
    {.name = "status", .value = "S", .help = "only runs in this status"},
    {.name = "workflow", .value = "ID", .help = "only runs of this workflow"},
    {.name = "label", .value = "K:V", .help = "only runs with this label"},
    {.name = "created-after", .value = "TIME", .help = "RFC 3339"},
    {.name = "created-before", .value = "TIME", .help = "RFC 3339"},
    SESSION_PAGE_FLAGS,
    {.name = NULL},
};
static const struct flag FLAGS_SHOW[] = {
    {.name = "events", .help = "its timeline too"},
    {.name = NULL},
};

static const struct column LIST_COLUMNS[] = {
    {"ID", "id"},         {"WORKFLOW", "workflow_id"}, {"VERSION", "workflow_version"},
    {"STATUS", "status"}, {"CREATED", "created_at"},   {"FINISHED", "finished_at"},
    {"LABELS", "labels"},
};
static const struct column STEP_COLUMNS[] = {
    {"STEP", "name"},       {"TYPE", "type"},          {"STATUS", "status"},
    {"ATTEMPT", "attempt"}, {"STARTED", "started_at"}, {"FINISHED", "finished_at"},
    {"OUTPUT", "output"},   {"ERROR", "error"},
};
static const struct column HOLDER_COLUMNS[] = {
    {"HELD BY", "run_id"},     {"WORKFLOW", "workflow_id"}, {"STATUS", "status"},
    {"CREATED", "created_at"}, {"STARTED", "started_at"},
};
static const struct column WAIT_COLUMNS[] = {
    {"STEP", "step"},           {"WAITS FOR", "kind"},
    {"QUEUE", "queue"},         {"PLACE", "place"},
    {"SLEEPS UNTIL", "due_at"}, {"WORKER", "worker_id"},
    {"ATTEMPT", "attempt"},     {"LEASE ENDS", "lease_expires_at"},
    {"JOB", "job_id"},
};
static const struct column EVENT_COLUMNS[] = {
    {"SEQ", "seq"},
    {"AT", "at"},
    {"TYPE", "type"},
    {"DATA", "data"},
};

static enum cli_exit run_start(struct session *s);
static enum cli_exit run_list(struct session *s);
static enum cli_exit run_show(struct session *s);
static enum cli_exit run_why(struct session *s);
static enum cli_exit run_cancel(struct session *s);

static const struct verb VERBS[] = {
    {.name = "start",
     .arg = "WORKFLOW",
     .about = "start a run; safe to repeat with --idempotency-key",
     .flags = FLAGS_START,
     .run = run_start},
    {.name = "list", .about = "runs, newest first", .flags = FLAGS_LIST, .run = run_list},
    {.name = "show",
     .arg = "ID",
     .about = "one run with its steps",
     .flags = FLAGS_SHOW,
     .run = run_show},
    {.name = "why",
     .arg = "ID",
     .about = "what a run waits for: limits and who holds them, workers, times",
     .run = run_why},
    {.name = "cancel", .arg = "ID", .about = "end a run now", .run = run_cancel},
};

const struct command COMMAND_RUN = {"run", VERBS, ARRAY_LEN(VERBS)};

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
            fprintf(stderr, "pawl: --label must be K=V in UTF-8: %s\n", label);
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

static enum cli_exit run_start(struct session *s)
{
    json_open(&s->out, NULL, '{');
    enum cli_exit rc = session_add_json(s, "input", "input");
    if (rc == CLI_DONE)
        rc = add_labels(s);
    if (rc != CLI_DONE)
        return rc;
    session_add_number(s, "priority", "priority");
    session_add_text(s, "at_limit", "at-limit");
    json_close(&s->out, '}');
    session_path(s, "/api/v1/workflows/", s->arg, "/runs");
    session_query(s, "wait_ms", options_text(&s->opt, "wait-ms"));
    s->wait_ms = options_number(&s->opt, "wait-ms", 0);
    return session_call(s, "POST", show_started);
}

/* --- looking at runs --- */

static void print_rows(const struct column *columns, size_t column_count, const json_t *rows)
{
    struct table table;
    table_init(&table, columns, column_count);
    table_add(&table, rows);
    if (!table_print(&table, stdout))
        fprintf(stderr, "pawl: too many rows for a table: use --json\n");
    table_release(&table);
}

static enum cli_exit run_list(struct session *s)
{
    session_path(s, "/api/v1/runs", "", "");
    session_query(s, "status", options_text(&s->opt, "status"));
    session_query(s, "workflow_id", options_text(&s->opt, "workflow"));
    session_query(s, "label", options_text(&s->opt, "label"));
    session_query(s, "created_after", options_text(&s->opt, "created-after"));
    session_query(s, "created_before", options_text(&s->opt, "created-before"));
    return session_pages(s, LIST_COLUMNS, ARRAY_LEN(LIST_COLUMNS));
}

static void show_run(struct session *s, json_t *answer)
{
    (void)s;
    json_t *steps = json_incref(json_object_get(answer, "steps"));
    (void)json_object_del(answer, "steps");
    object_print(stdout, answer);
    fputc('\n', stdout);
    print_rows(STEP_COLUMNS, ARRAY_LEN(STEP_COLUMNS), steps);
    json_decref(steps);
}

static enum cli_exit run_show(struct session *s)
{
    session_path(s, RUNS, s->arg, "");
    enum cli_exit rc = session_call(s, "GET", show_run);
    if (rc != CLI_DONE || !options_has(&s->opt, "events"))
        return rc;
    if (!s->json)
        putchar('\n');
    session_path(s, RUNS, s->arg, "/events");
    return session_list(s, EVENT_COLUMNS, ARRAY_LEN(EVENT_COLUMNS), NULL, true);
}

/* --- why --- */

/* "key input.customer = x: 1 of 1 runs are active", and who they are. */
static void show_limit(const json_t *limit)
{
    const json_t *holders = json_object_get(limit, "holders");
    const json_t *key = json_object_get(limit, "key");
    json_int_t current = json_integer_value(json_object_get(limit, "current"));
    fputc('\n', stdout);
    value_print(stdout, json_object_get(limit, "limited_by"));
    if (key != NULL) {
        fputc(' ', stdout);
        value_print(stdout, json_object_get(limit, "path"));
        fputs(" = ", stdout);
        value_print(stdout, json_string_length(key) > 0 ? key : NULL);
    }
    printf(": %lld of ", (long long)current);
    value_print(stdout, json_object_get(limit, "limit"));
    fputs(" runs are active\n", stdout);
    print_rows(HOLDER_COLUMNS, ARRAY_LEN(HOLDER_COLUMNS), holders);
    json_int_t more = current - (json_int_t)json_array_size(holders);
    if (more > 0)
        printf("and %lld more\n", (long long)more);
}

static void show_place(const json_t *answer)
{
    bool exact = json_is_true(json_object_get(answer, "place_is_exact"));
    fputs(exact ? "place " : "place at least ", stdout);
    value_print(stdout, json_object_get(answer, "place"));
    fputs(" in the queue for its limit; ", stdout);
    value_print(stdout, json_object_get(answer, "queued_runs"));
    fputs(" runs of the tenant are queued\n", stdout);
}

static void show_why(struct session *s, json_t *answer)
{
    (void)s;
    size_t i;
    json_t *reason;
    json_t *steps = json_array();
    value_print(stdout, json_object_get(answer, "summary"));
    fputc('\n', stdout);
    if (json_object_get(answer, "place") != NULL)
        show_place(answer);
    json_array_foreach (json_object_get(answer, "waits_for"), i, reason) {
        if (json_object_get(reason, "holders") != NULL)
            show_limit(reason);
        else
            (void)json_array_append(steps, reason);
    }
    if (json_array_size(steps) > 0) {
        fputc('\n', stdout);
        print_rows(WAIT_COLUMNS, ARRAY_LEN(WAIT_COLUMNS), steps);
    }
    json_decref(steps);
}

static enum cli_exit run_why(struct session *s)
{
    session_path(s, RUNS, s->arg, "/why");
    return session_call(s, "GET", show_why);
}

/* --- cancel --- */

static void show_cancelled(struct session *s, json_t *answer)
{
    json_t *run = json_object_get(answer, "run");
    json_t *status = json_object_get(run != NULL ? run : answer, "status");
    printf("%s ", s->arg);
    value_print(stdout, status);
    putchar('\n');
}

static enum cli_exit run_cancel(struct session *s)
{
    session_path(s, RUNS, s->arg, "/cancel");
    return session_call(s, "POST", show_cancelled);
}
