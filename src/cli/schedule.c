/* pawl schedule: cron schedules that start runs. */
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/input.h"

static const char SCHEDULES[] = "/api/v1/schedules/";

static const struct option OPTIONS_APPLY[] = {
    {.name = "file",
     .value = "FILE|-",
     .help = "Read the settings from a JSON object; options on the command line win"},
    {.name = "workflow", .value = "ID", .help = "The workflow to start"},
    {.name = "cron",
     .value = "'M H D M W'",
     .help = "When to start it: five fields, six with seconds in front, or @daily and the like"},
    {.name = "timezone",
     .value = "ZONE",
     .help = "Time zone of the cron expression, such as Europe/Berlin (default UTC)"},
    {.name = "overlap",
     .kind = OPTION_CHOICE,
     .choices = "skip|queue|allow",
     .help = "What happens while the previous run is still active (default skip)"},
    {.name = "catch-up-s",
     .kind = OPTION_NUMBER,
     .value = "N",
     .max = SCHEDULE_CATCH_UP_S_MAX,
     .unit = "seconds",
     .help = "Start a missed run if it is at most this many seconds late (default 0)"},
    {.name = "input", .value = "JSON|@FILE|-", .help = "The input of the runs"},
    {.name = "paused",
     .kind = OPTION_SWITCH,
     .help = "Start no runs until the schedule is applied without this option"},
    {.name = NULL},
};
static const struct option OPTIONS_LIST[] = {SESSION_PAGE_OPTIONS, {.name = NULL}};

static const struct column COLUMNS[] = {
    {"ID", "id"},
    {"WORKFLOW", "workflow_id"},
    {"CRON", "cron"},
    {"ZONE", "timezone"},
    {"OVERLAP", "overlap"},
    {"PAUSED", "paused"},
    {"NEXT", "next_times[0]"},
    {"LAST", "last_time"},
    {"LAST RUN", "last_run_id"},
};

static enum cli_exit schedule_apply(struct session *s);
static enum cli_exit schedule_list(struct session *s);
static enum cli_exit schedule_show(struct session *s);
static enum cli_exit schedule_delete(struct session *s);
static enum cli_exit schedule_trigger(struct session *s);

static const struct verb VERBS[] = {
    {.name = "apply",
     .arguments = "ID",
     .about = "Create or replace a schedule",
     .options = OPTIONS_APPLY,
     .run = schedule_apply},
    {.name = "list", .about = "List the schedules", .options = OPTIONS_LIST, .run = schedule_list},
    {.name = "show",
     .arguments = "ID",
     .about = "Show a schedule and its next times",
     .run = schedule_show},
    {.name = "delete",
     .arguments = "ID",
     .about = "Delete a schedule; its runs stay",
     .run = schedule_delete},
    {.name = "trigger",
     .arguments = "ID",
     .about = "Start an extra run of a schedule now",
     .run = schedule_trigger},
};

const struct command COMMAND_SCHEDULE = {"schedule", "Start runs at set times", VERBS,
                                         ARRAY_LEN(VERBS)};

/* --- apply --- */

/* The object in --file, or an empty one; the caller owns it. */
static enum cli_exit read_settings(struct session *s, json_t **ret)
{
    const char *file = options_text(&s->opt, "file");
    struct buf text;
    if (file == NULL) {
        *ret = json_object();
        return CLI_DONE;
    }
    buf_init(&text, JSON_TEXT_MAX);
    enum cli_exit rc = input_file(file, &text);
    if (rc == CLI_DONE)
        rc = input_parse(file, buf_str(&text), ret);
    buf_release(&text);
    if (rc != CLI_DONE || json_is_object(*ret))
        return rc;
    fprintf(stderr, "pawl: %s must be a JSON object\n", file);
    json_decref(*ret);
    return CLI_USAGE;
}

static void set_text(struct session *s, json_t *settings, const char *member, const char *option)
{
    const char *value = options_text(&s->opt, option);
    if (value != NULL)
        (void)json_object_set_new(settings, member, json_string(value));
}

static enum cli_exit set_input(struct session *s, json_t *settings)
{
    const char *value = options_text(&s->opt, "input");
    struct buf text;
    json_t *input = NULL;
    if (value == NULL)
        return CLI_DONE;
    buf_init(&text, JSON_TEXT_MAX);
    enum cli_exit rc = input_json("--input", value, &text);
    if (rc == CLI_DONE)
        rc = input_parse("--input", buf_str(&text), &input);
    if (rc == CLI_DONE)
        (void)json_object_set_new(settings, "input", input);
    buf_release(&text);
    return rc;
}

static enum cli_exit schedule_apply(struct session *s)
{
    json_t *settings;
    enum cli_exit rc = read_settings(s, &settings);
    if (rc != CLI_DONE)
        return rc;
    set_text(s, settings, "workflow_id", "workflow");
    set_text(s, settings, "cron", "cron");
    set_text(s, settings, "timezone", "timezone");
    set_text(s, settings, "overlap", "overlap");
    if (options_has(&s->opt, "catch-up-s"))
        (void)json_object_set_new(settings, "catch_up_s",
                                  json_integer(options_number(&s->opt, "catch-up-s", 0)));
    if (options_has(&s->opt, "paused"))
        (void)json_object_set_new(settings, "paused", json_true());
    rc = set_input(s, settings);
    if (rc == CLI_DONE)
        json_put_plain(&s->body, settings);
    json_decref(settings);
    if (rc != CLI_DONE)
        return rc;
    session_path(s, SCHEDULES, s->args[0], "");
    return session_call(s, "PUT", session_show_object);
}

/* --- the others --- */

static enum cli_exit schedule_list(struct session *s)
{
    session_path(s, "/api/v1/schedules", "", "");
    return session_pages(s, COLUMNS, ARRAY_LEN(COLUMNS));
}

static enum cli_exit schedule_show(struct session *s)
{
    session_path(s, SCHEDULES, s->args[0], "");
    return session_call(s, "GET", session_show_object);
}

static void show_deleted(struct session *s, json_t *answer)
{
    (void)answer;
    printf("%s deleted\n", s->args[0]);
}

static enum cli_exit schedule_delete(struct session *s)
{
    session_path(s, SCHEDULES, s->args[0], "");
    return session_call(s, "DELETE", show_deleted);
}

static void show_triggered(struct session *s, json_t *answer)
{
    value_print(stdout, json_object_get(answer, "run_id"));
    puts(s->reply.replayed ? "  replayed" : "  created");
}

static enum cli_exit schedule_trigger(struct session *s)
{
    session_path(s, SCHEDULES, s->args[0], "/trigger");
    return session_call(s, "POST", show_triggered);
}
