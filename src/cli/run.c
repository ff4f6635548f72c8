/* pawl run: starting runs, looking at them, ending them. */
#include "base/limits.h"
#include "cli/commands.h"

static const char RUNS[] = "/api/v1/runs/";

static const struct flag FLAGS_START[] = {
    {.name = "input", .value = "JSON|@FILE|-", .help = "the run's input, any JSON value"},
    {.name = "label", .value = "K=V", .help = "a label; may be given again", .many = true},
    {.name = "priority",
     .value = "N",
     .help = "higher ones go first",
     .number = true,
     .min = PRIORITY_MIN,
     .max = PRIORITY_MAX},
    {.name = "at-limit",
     .value = "POLICY",
     .help = "what to do when the tenant's limit is reached"},
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
static const struct column EVENT_COLUMNS[] = {
    {"SEQ", "seq"},
    {"AT", "at"},
    {"TYPE", "type"},
    {"DATA", "data"},
};

static enum cli_exit run_start(struct session *s);
static enum cli_exit run_list(struct session *s);
static enum cli_exit run_show(struct session *s);
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
    value_print(stdout, json_object_get(answer, "run_id"));
    fputs(s->reply.replayed ? "  replayed  " : "  created  ", stdout);
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

/* --- the rest --- */

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
    struct table table;
    json_t *steps = json_incref(json_object_get(answer, "steps"));
    (void)json_object_del(answer, "steps");
    object_print(stdout, answer);
    fputc('\n', stdout);
    table_init(&table, STEP_COLUMNS, ARRAY_LEN(STEP_COLUMNS));
    table_add(&table, steps);
    if (!table_print(&table, stdout))
        fprintf(stderr, "pawl: too many steps for a table: use --json\n");
    table_release(&table);
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
