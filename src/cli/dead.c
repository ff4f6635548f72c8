/* pawl dead: jobs that failed for good, for somebody to look at, retry or drop. */
#include "cli/commands.h"

static const char DEAD[] = "/api/v1/dead-letters/";

static const struct flag FLAGS_LIST[] = {SESSION_PAGE_FLAGS, {.name = NULL}};

static const struct column COLUMNS[] = {
    {"JOB", "job_id"},      {"RUN", "run_id"},         {"WORKFLOW", "workflow_id"},
    {"STEP", "step"},       {"ENTITY", "entity"},      {"QUEUE", "queue"},
    {"ATTEMPT", "attempt"}, {"FAILED", "finished_at"}, {"ERROR", "error"},
};

static enum cli_exit dead_list(struct session *s);
static enum cli_exit dead_retry(struct session *s);
static enum cli_exit dead_drop(struct session *s);

static const struct verb VERBS[] = {
    {.name = "list",
     .about = "jobs that failed for good, newest first",
     .flags = FLAGS_LIST,
     .run = dead_list},
    {.name = "retry",
     .arg = "ID",
     .about = "have the job's run try its failed steps again",
     .run = dead_retry},
    {.name = "drop", .arg = "ID", .about = "take a job off the list", .run = dead_drop},
};

const struct command COMMAND_DEAD = {"dead", VERBS, ARRAY_LEN(VERBS)};

static enum cli_exit dead_list(struct session *s)
{
    session_path(s, "/api/v1/dead-letters", "", "");
    return session_pages(s, COLUMNS, ARRAY_LEN(COLUMNS));
}

static void show_state(struct session *s, json_t *answer)
{
    printf("%s ", s->arg);
    value_print(stdout, json_object_get(answer, "state"));
    putchar('\n');
}

static enum cli_exit dead_retry(struct session *s)
{
    session_path(s, DEAD, s->arg, "/retry");
    return session_call(s, "POST", show_state);
}

static void show_dropped(struct session *s, json_t *answer)
{
    (void)answer;
    printf("%s dropped\n", s->arg);
}

static enum cli_exit dead_drop(struct session *s)
{
    session_path(s, DEAD, s->arg, "");
    return session_call(s, "DELETE", show_dropped);
}
