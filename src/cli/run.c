/* pawl run: starting runs, looking at them, asking why they wait, steering them. */
#include "base/limits.h"
#include "cli/commands.h"

enum { WATCH_POLL_MS_MIN = 50, WATCH_POLL_MS_MAX = 1000 };

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
    {.name = "start-at", .value = "TIME", .help = "not before; RFC 3339"},
    {.name = "wait-ms",
     .value = "N",
     .help = "wait for its end, at most that long",
     .number = true,
     .max = RUN_WAIT_MS_MAX},
    {.name = NULL},
};

/* Which runs: of a list, and of a change of many. */
#define FILTER_FLAGS                                                               \
    {.name = "status", .value = "S", .help = "only runs in this status"},          \
        {.name = "workflow", .value = "ID", .help = "only runs of this workflow"}, \
        {.name = "label", .value = "K:V", .help = "only runs with this label"},    \
        {.name = "created-after", .value = "TIME", .help = "RFC 3339"},            \
    {                                                                              \
        .name = "created-before", .value = "TIME", .help = "RFC 3339"              \
    }

static const struct {
    const char *flag;
    const char *member; /* of the query, or of `filter` */
} FILTER[] = {
    {"status", "status"},
    {"workflow", "workflow_id"},
    {"label", "label"},
    {"created-after", "created_after"},
    {"created-before", "created_before"},
};

static const struct flag FLAGS_LIST[] = {FILTER_FLAGS, SESSION_PAGE_FLAGS, {.name = NULL}};
static const struct flag FLAGS_SHOW[] = {
    {.name = "events", .help = "its timeline too"},
    {.name = NULL},
};

/* Refused when somebody else changed the run since it was looked at. */
#define IF_VERSION_FLAG                                                                        \
    {                                                                                          \
        .name = "if-version", .value = "N", .help = "only if this is still the run's version", \
        .number = true                                                                         \
    }

static const struct flag FLAGS_CANCEL[] = {
    {.name = "reason", .value = "TEXT", .help = "for the run's timeline"},
    IF_VERSION_FLAG,
    {.name = NULL},
};
static const struct flag FLAGS_CONTROL[] = {IF_VERSION_FLAG, {.name = NULL}};
static const struct flag FLAGS_RERUN[] = {
    {.name = "from", .value = "STEP", .help = "keep the results of all that is not behind it"},
    IF_VERSION_FLAG,
    {.name = NULL},
};
static const struct flag FLAGS_SIGNAL[] = {
    {.name = "payload", .value = "JSON|@FILE|-", .help = "what the waiting step gets"},
    {.name = "dedup-key", .value = "K", .help = "the same again counts as one"},
    IF_VERSION_FLAG,
    {.name = NULL},
};
static const struct flag FLAGS_BULK[] = {
    FILTER_FLAGS,
    {.name = "all", .help = "every run: no other filter"},
    {.name = "reason", .value = "TEXT", .help = "for the timelines"},
    {.name = "dry-run", .help = "only count them"},
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
    {"STEP", "step"},
    {"WAITS FOR", "kind"},
    {"QUEUE", "queue"},
    {"PLACE", "place"},
    {"UNTIL", "due_at"},
    {"SIGNAL", "signal"},
    {"CHILD RUN", "child_run_id"},
    {"WORKER", "worker_id"},
    {"ATTEMPT", "attempt"},
    {"LEASE ENDS", "lease_expires_at"},
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
static enum cli_exit run_watch(struct session *s);
static enum cli_exit run_cancel(struct session *s);
static enum cli_exit run_pause(struct session *s);
static enum cli_exit run_resume(struct session *s);
static enum cli_exit run_retry(struct session *s);
static enum cli_exit run_rerun(struct session *s);
static enum cli_exit run_signal(struct session *s);
static enum cli_exit run_bulk(struct session *s);

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
    {.name = "watch",
     .arg = "ID",
     .about = "its timeline as it happens; exit code 0 when it succeeded",
     .run = run_watch},
    {.name = "cancel",
     .arg = "ID",
     .about = "end a run now",
     .flags = FLAGS_CANCEL,
     .run = run_cancel},
    {.name = "pause",
     .arg = "ID",
     .about = "begin no more steps",
     .flags = FLAGS_CONTROL,
     .run = run_pause},
    {.name = "resume",
     .arg = "ID",
     .about = "go on after a pause",
     .flags = FLAGS_CONTROL,
     .run = run_resume},
    {.name = "retry",
     .arg = "ID",
     .about = "try the failed steps of a run again",
     .flags = FLAGS_CONTROL,
     .run = run_retry},
    {.name = "rerun",
     .arg = "ID",
     .about = "a new run with the same input",
     .flags = FLAGS_RERUN,
     .run = run_rerun},
    {.name = "signal",
     .arg = "ID",
     .arg2 = "NAME",
     .about = "what a step waits for, now or later",
     .flags = FLAGS_SIGNAL,
     .run = run_signal},
    {.name = "bulk",
     .arg = "ACTION",
     .about = "cancel, pause, resume or retry all runs of a filter",
     .flags = FLAGS_BULK,
     .run = run_bulk},
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
    session_add_text(s, "start_at", "start-at");
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
    for (size_t i = 0; i < ARRAY_LEN(FILTER); i++)
        session_query(s, FILTER[i].member, options_text(&s->opt, FILTER[i].flag));
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

/* --- watching --- */

static bool is_over(const char *status)
{
    static const char *const ENDS[] = {"succeeded", "failed", "denied", "cancelled", "timed_out"};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++)
        if (strcmp(status, ENDS[i]) == 0)
            return true;
    return false;
}

static void print_event(const struct session *s, const json_t *event)
{
    static const char *const SHOWN[] = {"at", "type", "data"};
    if (s->json) {
        value_print(stdout, event);
    } else {
        for (size_t i = 0; i < ARRAY_LEN(SHOWN); i++) {
            fputs(i > 0 ? "  " : "", stdout);
            value_print(stdout, json_object_get(event, SHOWN[i]));
        }
    }
    fputc('\n', stdout);
}

/* Shows what came behind *seq and moves it on; *ret_any says whether there was anything. */
static enum cli_exit print_events(struct session *s, json_int_t *seq, bool *ret_any)
{
    bool json = s->json;
    *ret_any = false;
    for (bool more = true; more;) {
        char cursor[24];
        size_t i;
        json_t *event;
        (void)snprintf(cursor, sizeof(cursor), "%lld", (long long)*seq);
        session_path(s, RUNS, s->arg, "/events");
        session_query(s, "cursor", cursor);
        s->json = false; /* an event is a line, not a page */
        enum cli_exit rc = session_call(s, "GET", NULL);
        s->json = json;
        if (rc != CLI_DONE)
            return rc;
        json_t *items = json_object_get(s->answer, "items");
        more = json_array_size(items) > 0;
        *ret_any |= more;
        json_array_foreach (items, i, event) {
            *seq = json_integer_value(json_object_get(event, "seq"));
            print_event(s, event);
        }
        (void)fflush(stdout);
    }
    return CLI_DONE;
}

/* The status is read before the events: of a run that was over then, all of them are there. */
static enum cli_exit run_watch(struct session *s)
{
    json_int_t seq = 0;
    int64_t pause_ms = WATCH_POLL_MS_MIN;
    for (;;) {
        bool json = s->json, any;
        char status[32];
        session_path(s, RUNS, s->arg, "");
        s->json = false;
        enum cli_exit rc = session_call(s, "GET", NULL);
        s->json = json;
        if (rc != CLI_DONE)
            return rc;
        const char *now = json_string_value(json_object_get(s->answer, "status"));
        (void)snprintf(status, sizeof(status), "%s", now != NULL ? now : "");
        rc = print_events(s, &seq, &any);
        if (rc != CLI_DONE)
            return rc;
        if (is_over(status))
            return strcmp(status, "succeeded") == 0 ? CLI_DONE : CLI_REFUSED;
        pause_ms = any ? WATCH_POLL_MS_MIN : MIN(2 * pause_ms, WATCH_POLL_MS_MAX);
        client_pause(pause_ms);
    }
}

/* --- steering one --- */

static void show_status(struct session *s, json_t *answer)
{
    printf("%s ", s->arg);
    value_print(stdout, json_object_get(answer, "status"));
    putchar('\n');
}

/* POSTs what is in the body; `quoted` lives as long as the call. */
static enum cli_exit steer(struct session *s, const char *action,
                           void (*show)(struct session *s, json_t *answer))
{
    char quoted[32];
    if (options_has(&s->opt, "if-version")) {
        (void)snprintf(quoted, sizeof(quoted), "\"%s\"", options_text(&s->opt, "if-version"));
        s->if_match = quoted;
    }
    session_path(s, RUNS, s->arg, action);
    enum cli_exit rc = session_call(s, "POST", show);
    s->if_match = NULL;
    return rc;
}

static enum cli_exit run_cancel(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "reason", "reason");
    json_close(&s->out, '}');
    return steer(s, "/cancel", show_status);
}

static enum cli_exit run_pause(struct session *s)
{
    return steer(s, "/pause", show_status);
}

static enum cli_exit run_resume(struct session *s)
{
    return steer(s, "/resume", show_status);
}

static enum cli_exit run_retry(struct session *s)
{
    return steer(s, "/retry", show_status);
}

static enum cli_exit run_rerun(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "from_step", "from");
    json_close(&s->out, '}');
    return steer(s, "/rerun", show_started);
}

static void show_signal(struct session *s, json_t *answer)
{
    printf("%s ", s->arg2);
    fputs(json_is_true(json_object_get(answer, "duplicate")) ? "was there before; the run is "
                                                             : "received; the run is ",
          stdout);
    value_print(stdout, json_object_get(answer, "run_status"));
    putchar('\n');
}

static enum cli_exit run_signal(struct session *s)
{
    json_open(&s->out, NULL, '{');
    json_add_text(&s->out, "name", str_of(s->arg2));
    enum cli_exit rc = session_add_json(s, "payload", "payload");
    if (rc != CLI_DONE)
        return rc;
    session_add_text(s, "dedup_key", "dedup-key");
    json_close(&s->out, '}');
    return steer(s, "/signals", show_signal);
}

/* --- steering many --- */

struct bulk_total {
    json_int_t matched;
    json_int_t changed;
    json_int_t unchanged;
    size_t refused;
};

/* Everything is asked for in so many words: a filter that was forgotten would be every run. */
static bool check_filter(const struct session *s)
{
    bool all = options_has(&s->opt, "all"), any = false;
    for (size_t i = 0; i < ARRAY_LEN(FILTER); i++)
        any |= options_has(&s->opt, FILTER[i].flag);
    if (any != all)
        return true;
    fprintf(stderr, all ? "pawl: --all and a filter do not go together\n"
                        : "pawl: which runs? Give a filter, or --all\n");
    return false;
}

static void write_bulk(struct session *s, const json_t *cursor)
{
    buf_clear(&s->body);
    s->out = json_out_to(&s->body);
    json_open(&s->out, NULL, '{');
    json_add_text(&s->out, "action", str_of(s->arg));
    json_open(&s->out, "filter", '{');
    for (size_t i = 0; i < ARRAY_LEN(FILTER); i++)
        session_add_text(s, FILTER[i].member, FILTER[i].flag);
    json_close(&s->out, '}');
    json_add_bool(&s->out, "dry_run", options_has(&s->opt, "dry-run"));
    session_add_text(s, "reason", "reason");
    if (json_is_string(cursor))
        json_add_text(&s->out, "cursor", json_str(cursor));
    json_close(&s->out, '}');
}

static void add_total(struct bulk_total *t, const json_t *answer)
{
    size_t i;
    json_t *refused;
    t->matched += json_integer_value(json_object_get(answer, "matched"));
    t->changed += json_integer_value(json_object_get(answer, "changed"));
    t->unchanged += json_integer_value(json_object_get(answer, "unchanged"));
    json_array_foreach (json_object_get(answer, "refused"), i, refused) {
        t->refused++;
        fputs("pawl: ", stderr);
        value_print(stderr, json_object_get(refused, "run_id"));
        fputs(": ", stderr);
        value_print(stderr, json_object_get(refused, "code"));
        fputs(": ", stderr);
        value_print(stderr, json_object_get(refused, "detail"));
        fputc('\n', stderr);
    }
}

static void print_total(const struct session *s, const struct bulk_total *t)
{
    printf("%lld runs", (long long)t->matched);
    if (!options_has(&s->opt, "dry-run"))
        printf(": %lld changed, %lld were so already, %zu refused", (long long)t->changed,
               (long long)t->unchanged, t->refused);
    putchar('\n');
}

/* The server takes some at a time; each part is a change with a key of its own. */
static enum cli_exit run_bulk(struct session *s)
{
    struct bulk_total total = {0};
    const char *key = s->idempotency_key;
    json_t *cursor = NULL;
    enum cli_exit rc;
    if (!check_filter(s))
        return CLI_USAGE;
    session_path(s, "/api/v1/runs:bulk", "", "");
    do {
        char part[IDEM_KEY_MAX + 32];
        write_bulk(s, cursor);
        if (key != NULL && cursor != NULL) {
            (void)snprintf(part, sizeof(part), "%s:%s", key, json_string_value(cursor));
            s->idempotency_key = part;
        }
        rc = session_call(s, "POST", NULL);
        s->idempotency_key = key;
        if (rc != CLI_DONE)
            break;
        add_total(&total, s->answer);
        json_decref(cursor);
        cursor = json_incref(json_object_get(s->answer, "next_cursor"));
    } while (json_is_string(cursor));
    json_decref(cursor);
    if (!s->json && (rc == CLI_DONE || total.matched > 0))
        print_total(s, &total);
    return rc == CLI_DONE && total.refused > 0 ? CLI_REFUSED : rc;
}
