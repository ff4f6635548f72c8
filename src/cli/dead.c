/* pawl dead: jobs that failed and have no retries left. */
#include "cli/commands.h"
#include "cli/names.h"

static const char DEAD[] = "/api/v1/dead-letters/";

static const struct option OPTIONS_LIST[] = {SESSION_PAGE_OPTIONS, {.name = NULL}};

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
     .about = "List jobs that failed and have no retries left, newest first",
     .options = OPTIONS_LIST,
     .run = dead_list},
    {.name = "retry",
     .arguments = "ID",
     .ids = &IDS_OF_DEAD,
     .about = "Retry the failed steps of the job's run",
     .run = dead_retry},
    {.name = "drop",
     .arguments = "ID",
     .ids = &IDS_OF_DEAD,
     .about = "Remove a job from the list",
     .run = dead_drop},
};

const struct command COMMAND_DEAD = {"dead", "Handle dead letters: jobs that have no retries left",
                                     VERBS, ARRAY_LEN(VERBS)};

static enum cli_exit dead_list(struct session *s)
{
    session_path(s, "/api/v1/dead-letters", "", "");
    return session_pages(s, COLUMNS, ARRAY_LEN(COLUMNS));
}

static void show_state(struct session *s, json_t *answer)
{
    printf("%s ", s->args[0]);
    value_print(stdout, json_object_get(answer, "state"));
    putchar('\n');
}

static enum cli_exit dead_retry(struct session *s)
{
    session_path(s, DEAD, s->args[0], "/retry");
    return session_call(s, "POST", show_state);
}

static void show_dropped(struct session *s, json_t *answer)
{
    (void)answer;
    printf("%s dropped\n", s->args[0]);
}

static enum cli_exit dead_drop(struct session *s)
{
    session_path(s, DEAD, s->args[0], "");
    return session_call(s, "DELETE", show_dropped);
}
