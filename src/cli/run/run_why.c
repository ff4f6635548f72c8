/* pawl run why: explains what a run waits for. */
#include "base/limits.h"
#include "cli/run/run_verbs.h"
#include "cli/term/term.h"

static const struct column HOLDER_COLUMNS[] = {
    {"HELD BY", "run_id"},     {"WORKFLOW", "workflow_id"}, {"STATUS", "status"},
    {"CREATED", "created_at"}, {"STARTED", "started_at"},
};
static const struct column WAIT_COLUMNS[] = {
    {"STEP", "step"},        {"WAITS FOR", "kind"},       {"QUEUE", "queue"},
    {"PLACE", "place"},      {"UNTIL", "due_at"},         {"SUSPENDED UNTIL", "until"},
    {"SIGNAL", "signal"},    {"APPROVAL", "approval_id"}, {"CHILD RUN", "child_run_id"},
    {"WORKER", "worker_id"}, {"ATTEMPT", "attempt"},      {"LEASE ENDS", "lease_expires_at"},
    {"JOB", "job_id"},
};
/* "key input.customer = x: 1 of 1 runs are active", and those runs. */
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
    rows_print(stdout, HOLDER_COLUMNS, ARRAY_LEN(HOLDER_COLUMNS), holders);
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

/* In lines that fit a terminal; elsewhere on one line. */
static void show_summary(const json_t *summary)
{
    struct buf clean;
    buf_init(&clean, HTTP_REPLY_MAX);
    put_clean(&clean, json_is_string(summary) ? json_str(summary) : STR("-"));
    if (term_of(stdout).is_terminal && buf_ok(&clean))
        options_print_text(stdout, clean.ptr);
    else
        printf("%.*s\n", STR_ARG(buf_str(&clean)));
    buf_release(&clean);
}

static void show_why(struct session *s, json_t *answer)
{
    (void)s;
    size_t i;
    json_t *reason;
    json_t *steps = json_array();
    show_summary(json_object_get(answer, "summary"));
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
        rows_print(stdout, WAIT_COLUMNS, ARRAY_LEN(WAIT_COLUMNS), steps);
    }
    json_decref(steps);
}

enum cli_exit run_why(struct session *s)
{
    session_path(s, RUN_PATH, s->args[0], "/why");
    return session_call(s, "GET", show_why);
}
