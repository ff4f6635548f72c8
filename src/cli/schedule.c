/* pawl schedule: times that start runs by themselves. */
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/input.h"

static const char SCHEDULES[] = "/api/v1/schedules/";

static const struct flag FLAGS_APPLY[] = {
    {.name = "file", .value = "FILE|-", .help = "its settings as a JSON object; flags beat it"},
    {.name = "workflow", .value = "ID", .help = "what it starts"},
    {.name = "cron", .value = "'M H D M W'", .help = "when: five fields, six with seconds, @daily"},
    {.name = "timezone", .value = "ZONE", .help = "of those times, as Europe/Berlin; default UTC"},
    {.name = "overlap",
     .value = "POLICY",
     .help = "while the run before it is active: skip, queue or allow; default skip"},
    {.name = "catch-up-s",
     .value = "N",
     .help = "how late a missed time may still start a run; default 0",
     .number = true,
     .max = SCHEDULE_CATCH_UP_S_MAX},
    {.name = "input", .value = "JSON|@FILE|-", .help = "of the runs it starts"},
    {.name = "paused", .help = "start nothing by itself"},
    {.name = NULL},
};
static const struct flag FLAGS_LIST[] = {SESSION_PAGE_FLAGS, {.name = NULL}};

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
     .arg = "ID",
     .about = "make a schedule, or put another in its place",
     .flags = FLAGS_APPLY,
     .run = schedule_apply},
    {.name = "list", .about = "the schedules", .flags = FLAGS_LIST, .run = schedule_list},
    {.name = "show", .arg = "ID", .about = "one schedule, its next times", .run = schedule_show},
    {.name = "delete", .arg = "ID", .about = "its runs stay", .run = schedule_delete},
    {.name = "trigger", .arg = "ID", .about = "a run now, besides", .run = schedule_trigger},
};

const struct command COMMAND_SCHEDULE = {"schedule", VERBS, ARRAY_LEN(VERBS)};

/* --- apply --- */

/* The file's object, or an empty one; the caller owns it. */
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
    fprintf(stderr, "pawl: %s: must be an object\n", file);
    json_decref(*ret);
    return CLI_USAGE;
}

static void set_text(struct session *s, json_t *settings, const char *member, const char *flag)
{
    const char *value = options_text(&s->opt, flag);
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
    json_put_plain(&s->body, settings);
    json_decref(settings);
    if (rc != CLI_DONE)
        return rc;
    session_path(s, SCHEDULES, s->arg, "");
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
    session_path(s, SCHEDULES, s->arg, "");
    return session_call(s, "GET", session_show_object);
}

static void show_deleted(struct session *s, json_t *answer)
{
    (void)answer;
    printf("%s deleted\n", s->arg);
}

static enum cli_exit schedule_delete(struct session *s)
{
    session_path(s, SCHEDULES, s->arg, "");
    return session_call(s, "DELETE", show_deleted);
}

static void show_triggered(struct session *s, json_t *answer)
{
    value_print(stdout, json_object_get(answer, "run_id"));
    puts(s->reply.replayed ? "  replayed" : "  created");
}

static enum cli_exit schedule_trigger(struct session *s)
{
    session_path(s, SCHEDULES, s->arg, "/trigger");
    return session_call(s, "POST", show_triggered);
}
