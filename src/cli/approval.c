/* pawl approval: steps that wait for a person, and their decisions. */
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/names.h"

static const char APPROVALS[] = "/api/v1/approvals/";

static const struct option OPTIONS_LIST[] = {
    {.name = "status",
     .kind = OPTION_CHOICE,
     .value = "STATUS",
     .choices = "pending|approved|rejected|expired|void|all",
     .fallback = "pending",
     .help = "Only approvals in this status"},
    SESSION_PAGE_OPTIONS,
    {.name = NULL},
};

#define DECISION_OPTIONS                                                                       \
    {.name = "reason", .value = "TEXT", .help = "The reason, for the record"},                 \
    {                                                                                          \
        .name = "expected-hash", .value = "HASH",                                              \
        .help = "Only if this is still the content_hash: nobody has changed the content since" \
    }

static const struct option OPTIONS_APPROVE[] = {
    DECISION_OPTIONS,
    {.name = "edited", .value = "JSON|@FILE|-", .help = "Approve this content instead"},
    {.name = NULL},
};
static const struct option OPTIONS_REJECT[] = {DECISION_OPTIONS, {.name = NULL}};
static const struct option OPTIONS_ANALYTICS[] = {
    {.name = "days",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .max = APPROVAL_STATS_DAYS_MAX,
     .unit = "days",
     .help = "How many days to look back (default 30)"},
    {.name = "workflow", .value = "ID", .help = "Only approvals of this workflow"},
    {.name = NULL},
};

static const struct column COLUMNS[] = {
    {"JOB", "job_id"},         {"WORKFLOW", "workflow_id"},  {"STEP", "step"},
    {"STATUS", "status"},      {"ASKED BY", "requested_by"}, {"SINCE", "requested_at"},
    {"EXPIRES", "expires_at"}, {"PROMPT", "prompt"},
};

static const struct column STATS_COLUMNS[] = {
    {"WORKFLOW", "workflow_id"},
    {"REQUESTED", "requested"},
    {"PENDING", "pending"},
    {"APPROVED", "approved"},
    {"REJECTED", "rejected"},
    {"EXPIRED", "expired"},
    {"P50 S", "p50"},
    {"P95 S", "p95"},
    {"MEAN S", "mean"},
    {"REPLAYS", "replays"},
    {"CONFLICTS", "conflicts"},
};

static const char JOB_NOTE[] = "JOB is the id in the first column of `pawl approval list`.\n";

static enum cli_exit approval_list(struct session *s);
static enum cli_exit approval_show(struct session *s);
static enum cli_exit approval_approve(struct session *s);
static enum cli_exit approval_reject(struct session *s);
static enum cli_exit approval_analytics(struct session *s);

static const struct verb VERBS[] = {
    {.name = "list",
     .about = "List approvals, newest first; only pending ones unless you set --status",
     .options = OPTIONS_LIST,
     .run = approval_list},
    {.name = "show",
     .arguments = "JOB",
     .ids = &IDS_OF_APPROVALS,
     .about = "Show an approval: its content, the approvers and their votes",
     .notes = JOB_NOTE,
     .run = approval_show},
    {.name = "approve",
     .arguments = "JOB",
     .ids = &IDS_OF_APPROVALS,
     .about = "Approve; safe to repeat",
     .notes = JOB_NOTE,
     .options = OPTIONS_APPROVE,
     .run = approval_approve},
    {.name = "reject",
     .arguments = "JOB",
     .ids = &IDS_OF_APPROVALS,
     .about = "Reject; safe to repeat",
     .notes = JOB_NOTE,
     .options = OPTIONS_REJECT,
     .run = approval_reject},
    {.name = "analytics",
     .about = "Show how long decisions take, and how often they are repeated or contradicted",
     .options = OPTIONS_ANALYTICS,
     .run = approval_analytics},
};

const struct command COMMAND_APPROVAL = {
    "approval", "Decide on steps that need a person's approval", VERBS, ARRAY_LEN(VERBS)};

static enum cli_exit approval_list(struct session *s)
{
    const char *status = options_text(&s->opt, "status");
    session_path(s, "/api/v1/approvals", "", "");
    if (strcmp(status, "all") != 0)
        session_query(s, "status", status);
    return session_pages(s, COLUMNS, ARRAY_LEN(COLUMNS));
}

static enum cli_exit approval_show(struct session *s)
{
    session_path(s, APPROVALS, s->args[0], "");
    return session_call(s, "GET", session_show_object);
}

/* --- deciding --- */

/* "ID already_approved  by ann at …", or "ID pending  1 of 2" votes. */
static void show_decision(struct session *s, json_t *answer)
{
    static const char *const WHO[][2] = {{"approved_by", "approved_at"},
                                         {"rejected_by", "rejected_at"}};
    printf("%s ", s->args[0]);
    value_print(stdout, json_object_get(answer, "status"));
    for (size_t i = 0; i < ARRAY_LEN(WHO); i++) {
        if (json_object_get(answer, WHO[i][0]) == NULL)
            continue;
        fputs("  by ", stdout);
        value_print(stdout, json_object_get(answer, WHO[i][0]));
        fputs(" at ", stdout);
        value_print(stdout, json_object_get(answer, WHO[i][1]));
    }
    if (json_integer_value(json_object_get(answer, "needed")) > 1) {
        fputs("  ", stdout);
        value_print(stdout, json_object_get(answer, "approvals"));
        fputs(" of ", stdout);
        value_print(stdout, json_object_get(answer, "needed"));
    }
    putchar('\n');
}

static void begin_decision(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "reason", "reason");
    session_add_text(s, "expected_hash", "expected-hash");
}

static enum cli_exit approval_approve(struct session *s)
{
    begin_decision(s);
    enum cli_exit rc = session_add_json(s, "edited", "edited");
    if (rc != CLI_DONE)
        return rc;
    json_close(&s->out, '}');
    session_path(s, APPROVALS, s->args[0], "/approve");
    return session_call(s, "POST", show_decision);
}

static enum cli_exit approval_reject(struct session *s)
{
    begin_decision(s);
    json_close(&s->out, '}');
    session_path(s, APPROVALS, s->args[0], "/reject");
    return session_call(s, "POST", show_decision);
}

/* --- analytics --- */

/* Moves the times up beside the counts, where the table looks for them. */
static void flatten(json_t *group)
{
    const char *name;
    json_t *value;
    json_t *times = json_object_get(group, "decision_seconds");
    json_object_foreach (times, name, value)
        (void)json_object_set(group, name, value);
}

static void show_analytics(struct session *s, json_t *answer)
{
    (void)s;
    json_t *rows = json_array();
    json_t *total = json_object_get(answer, "total");
    json_t *workflows = json_object_get(answer, "workflows");
    size_t i;
    json_t *workflow;
    json_array_foreach (workflows, i, workflow) {
        flatten(workflow);
        (void)json_array_append(rows, workflow);
    }
    flatten(total);
    (void)json_object_set_new(total, "workflow_id", json_string("(all)"));
    (void)json_array_append(rows, total);
    rows_print(stdout, STATS_COLUMNS, ARRAY_LEN(STATS_COLUMNS), rows);
    json_decref(rows);
    if (json_is_true(json_object_get(answer, "truncated")))
        puts("Only the newest approvals are counted.");
}

static enum cli_exit approval_analytics(struct session *s)
{
    session_path(s, APPROVALS, "analytics", "");
    session_query(s, "days", options_text(&s->opt, "days"));
    session_query(s, "workflow_id", options_text(&s->opt, "workflow"));
    return session_call(s, "GET", show_analytics);
}
