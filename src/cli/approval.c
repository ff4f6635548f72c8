/* pawl approval: what waits for a person, and what they say. */
#include "base/limits.h"
#include "cli/commands.h"

static const char APPROVALS[] = "/api/v1/approvals/";

static const struct flag FLAGS_LIST[] = {
    {.name = "status",
     .value = "STATUS",
     .help = "pending, approved, rejected, expired, void or all; default pending"},
    SESSION_PAGE_FLAGS,
    {.name = NULL},
};
static const struct flag FLAGS_APPROVE[] = {
    {.name = "reason", .value = "TEXT", .help = "why, for whoever asks later"},
    {.name = "expected-hash",
     .value = "HASH",
     .help = "only if this is still what is shown: the content_hash that was seen"},
    {.name = "edited",
     .value = "JSON|@FILE|-",
     .help = "what is approved instead of what was shown"},
    {.name = NULL},
};
static const struct flag FLAGS_REJECT[] = {
    {.name = "reason", .value = "TEXT", .help = "why, for whoever asks later"},
    {.name = "expected-hash",
     .value = "HASH",
     .help = "only if this is still what is shown: the content_hash that was seen"},
    {.name = NULL},
};
static const struct flag FLAGS_ANALYTICS[] = {
    {.name = "days",
     .value = "N",
     .help = "how far back; default 30",
     .number = true,
     .min = 1,
     .max = APPROVAL_STATS_DAYS_MAX},
    {.name = "workflow", .value = "ID", .help = "of this workflow only"},
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

static enum cli_exit approval_list(struct session *s);
static enum cli_exit approval_show(struct session *s);
static enum cli_exit approval_approve(struct session *s);
static enum cli_exit approval_reject(struct session *s);
static enum cli_exit approval_analytics(struct session *s);

static const struct verb VERBS[] = {
    {.name = "list",
     .about = "what waits for a decision, newest first",
     .flags = FLAGS_LIST,
     .run = approval_list},
    {.name = "show",
     .arg = "JOB",
     .about = "one of them: content, who is asked, who has voted",
     .run = approval_show},
    {.name = "approve",
     .arg = "JOB",
     .about = "let it go; safe to repeat",
     .flags = FLAGS_APPROVE,
     .run = approval_approve},
    {.name = "reject",
     .arg = "JOB",
     .about = "say no; safe to repeat",
     .flags = FLAGS_REJECT,
     .run = approval_reject},
    {.name = "analytics",
     .about = "how long decisions take, and how often they are repeated or contradicted",
     .flags = FLAGS_ANALYTICS,
     .run = approval_analytics},
};

const struct command COMMAND_APPROVAL = {"approval", VERBS, ARRAY_LEN(VERBS)};

static enum cli_exit approval_list(struct session *s)
{
    const char *status = options_text(&s->opt, "status");
    session_path(s, "/api/v1/approvals", "", "");
    if (status == NULL || strcmp(status, "all") != 0)
        session_query(s, "status", status != NULL ? status : "pending");
    return session_pages(s, COLUMNS, ARRAY_LEN(COLUMNS));
}

static enum cli_exit approval_show(struct session *s)
{
    session_path(s, APPROVALS, s->arg, "");
    return session_call(s, "GET", session_show_object);
}

/* --- deciding --- */

/* "ID already_approved  by ann at …", or how many votes there are of how many. */
static void show_decision(struct session *s, json_t *answer)
{
    static const char *const WHO[][2] = {{"approved_by", "approved_at"},
                                         {"rejected_by", "rejected_at"}};
    printf("%s ", s->arg);
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

static void begin_words(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "reason", "reason");
    session_add_text(s, "expected_hash", "expected-hash");
}

static enum cli_exit approval_approve(struct session *s)
{
    begin_words(s);
    enum cli_exit rc = session_add_json(s, "edited", "edited");
    json_close(&s->out, '}');
    session_path(s, APPROVALS, s->arg, "/approve");
    return rc == CLI_DONE ? session_call(s, "POST", show_decision) : rc;
}

static enum cli_exit approval_reject(struct session *s)
{
    begin_words(s);
    json_close(&s->out, '}');
    session_path(s, APPROVALS, s->arg, "/reject");
    return session_call(s, "POST", show_decision);
}

/* --- analytics --- */

/* The times beside the counts, as a table has them. */
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
    struct table t;
    table_init(&t, STATS_COLUMNS, ARRAY_LEN(STATS_COLUMNS));
    table_add(&t, rows);
    if (!table_print(&t, stdout))
        fprintf(stderr, "pawl: there are more workflows than fit into memory\n");
    table_release(&t);
    json_decref(rows);
    if (json_is_true(json_object_get(answer, "truncated")))
        puts("only the newest approvals were looked at");
}

static enum cli_exit approval_analytics(struct session *s)
{
    session_path(s, APPROVALS, "analytics", "");
    session_query(s, "days", options_text(&s->opt, "days"));
    session_query(s, "workflow_id", options_text(&s->opt, "workflow"));
    return session_call(s, "GET", show_analytics);
}
