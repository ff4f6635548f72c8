/* pawl entity: signals and updates to entities, and their state. */
#include "base/env.h"
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/entity_type.h"

static const char ENTITIES[] = "/api/v1/entities/";

static const struct option OPTIONS_SIGNAL[] = {
    {.name = "dedup-key", .value = "KEY", .help = "Signals with the same key count once"},
    {.name = NULL},
};
static const struct option OPTIONS_UPDATE[] = {
    {.name = "dedup-key",
     .value = "KEY",
     .help = "Updates with the same key count once and get the same answer (default: random)"},
    {.name = "wait-ms",
     .kind = OPTION_NUMBER,
     .value = "N",
     .max = RUN_WAIT_MS_MAX,
     .unit = "milliseconds",
     .help = "Wait for the answer, for at most this long (default 10000)"},
    {.name = NULL},
};
static const struct option OPTIONS_LIST[] = {
    {.name = "version",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .help = "Only entities of this version of the type"},
    SESSION_PAGE_OPTIONS,
    {.name = NULL},
};
static const struct option OPTIONS_PAGES[] = {SESSION_PAGE_OPTIONS, {.name = NULL}};
static const struct option OPTIONS_MIGRATE[] = {
    {.name = "version",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .help = "The version to migrate to (default: the newest)"},
    {.name = NULL},
};

static const struct column ENTITY_COLUMNS[] = {
    {"ID", "id"},
    {"TYPE VERSION", "type_version"},
    {"VERSION", "version"},
    {"GENERATION", "generation"},
    {"INBOX", "inbox"},
    {"LAST SEQ", "last_seq"},
    {"ACTIVE", "active_at"},
    {"FINISHED", "finished_at"},
};
static const struct column TIMER_COLUMNS[] = {
    {"TIMER", "name"},
    {"DUE", "due_at"},
    {"PAYLOAD", "payload"},
};
static const struct column EVENT_COLUMNS[] = {
    {"SEQ", "seq"},
    {"AT", "at"},
    {"TYPE", "type"},
    {"DATA", "data"},
};
static const struct column GENERATION_COLUMNS[] = {
    {"GENERATION", "generation"},     {"BECAUSE", "reason"},  {"AT", "at"},
    {"TYPE VERSION", "type_version"}, {"VERSION", "version"}, {"THROUGH SEQ", "consumed_seq"},
    {"FIRST EVENT", "first_event"},   {"TIMERS", "timers"},   {"STATE", "state"},
};

static enum cli_exit entity_signal(struct session *s);
static enum cli_exit entity_update(struct session *s);
static enum cli_exit entity_outcome(struct session *s);
static enum cli_exit entity_show(struct session *s);
static enum cli_exit entity_list(struct session *s);
static enum cli_exit entity_events(struct session *s);
static enum cli_exit entity_generations(struct session *s);
static enum cli_exit entity_migrate(struct session *s);
static enum cli_exit entity_delete(struct session *s);

static const struct verb VERBS[] = {
    {.name = "type set",
     .arguments = "TYPE",
     .about = "Create an entity type, or change it",
     .options = OPTIONS_ENTITY_TYPE_SET,
     .run = entity_type_set},
    {.name = "type list",
     .about = "List the entity types",
     .options = OPTIONS_PAGES,
     .run = entity_type_list},
    {.name = "type show",
     .arguments = "TYPE",
     .about = "Show an entity type and its versions",
     .run = entity_type_show},
    {.name = "signal",
     .arguments = "TYPE ID NAME [PAYLOAD]",
     .about = "Send a signal to an entity; the first signal creates it",
     .notes = "PAYLOAD is JSON, @FILE or - for standard input. With --dedup-key it is safe to send "
              "the same signal again: it counts once as long as the entity remembers the key.\n",
     .options = OPTIONS_SIGNAL,
     .run = entity_signal},
    {.name = "update",
     .arguments = "TYPE ID NAME [PAYLOAD]",
     .about = "Ask an entity for a change and wait for its answer; exit code 1 if it rejects it",
     .notes = "PAYLOAD is JSON, @FILE or - for standard input. If there is no answer in time, the "
              "command says so and exits with 0. Repeat it with the same --dedup-key, or use `pawl "
              "entity outcome`, to get the answer later.\n",
     .options = OPTIONS_UPDATE,
     .run = entity_update},
    {.name = "outcome",
     .arguments = "TYPE ID SEQ",
     .about = "Show the answer to an update; exit code 1 if it was rejected",
     .run = entity_outcome},
    {.name = "show",
     .arguments = "TYPE ID",
     .about = "Show an entity: its state, timers and waiting signals",
     .run = entity_show},
    {.name = "list",
     .arguments = "TYPE",
     .about = "List the entities of a type, ordered by id",
     .options = OPTIONS_LIST,
     .run = entity_list},
    {.name = "events",
     .arguments = "TYPE ID",
     .about = "Show the timeline of an entity, over all its generations",
     .options = OPTIONS_PAGES,
     .run = entity_events},
    {.name = "generations",
     .arguments = "TYPE ID",
     .about = "List the generations of an entity, newest first",
     .options = OPTIONS_PAGES,
     .run = entity_generations},
    {.name = "migrate",
     .arguments = "TYPE ID",
     .about = "Move an entity to another version of its type",
     .options = OPTIONS_MIGRATE,
     .run = entity_migrate},
    {.name = "delete",
     .arguments = "TYPE ID",
     .about = "Permanently delete an entity",
     .run = entity_delete},
    {.name = "stats",
     .arguments = "TYPE",
     .about = "Show how late duplicate signals arrive, to judge the deduplication window",
     .run = entity_type_stats},
};

const struct command COMMAND_ENTITY = {
    "entity", "Signal and inspect entities, and define their types", VERBS, ARRAY_LEN(VERBS)};

/* The path of the entity that the first two arguments name. */
static void entity_path(struct session *s, const char *suffix)
{
    session_path(s, ENTITIES, s->args[0], "/");
    session_path_on(s, s->args[1], suffix);
}

/* --- signals and updates --- */

static enum cli_exit write_signal(struct session *s)
{
    json_open(&s->out, NULL, '{');
    json_add_text(&s->out, "name", str_of(s->args[2]));
    return session_add_json_arg(s, "payload", "PAYLOAD", s->args[3]);
}

static void show_signaled(struct session *s, json_t *answer)
{
    (void)s;
    value_print(stdout, json_object_get(answer, "seq"));
    puts(json_is_true(json_object_get(answer, "duplicate")) ? "  duplicate" : "  new");
}

static enum cli_exit entity_signal(struct session *s)
{
    enum cli_exit rc = write_signal(s);
    if (rc != CLI_DONE)
        return rc;
    session_add_text(s, "dedup_key", "dedup-key");
    json_close(&s->out, '}');
    entity_path(s, "/signals");
    return session_call(s, "POST", show_signaled);
}

/* "7  completed  {…}", "7  rejected  CODE: message" or "7  waiting". */
static void show_outcome(struct session *s, json_t *answer)
{
    (void)s;
    const json_t *error = json_object_get(answer, "error");
    const json_t *result = json_object_get(answer, "result");
    value_print(stdout, json_object_get(answer, "seq"));
    fputs("  ", stdout);
    value_print(stdout, json_object_get(answer, "status"));
    if (json_is_object(error)) {
        fputs("  ", stdout);
        value_print(stdout, json_object_get(error, "code"));
        fputs(": ", stdout);
        value_print(stdout, json_object_get(error, "message"));
    } else if (str_is(json_str(json_object_get(answer, "status")), "completed")) {
        fputs("  ", stdout);
        value_print(stdout, result);
    }
    putchar('\n');
}

static enum cli_exit call_for_outcome(struct session *s, const char *method)
{
    enum cli_exit rc = session_call(s, method, show_outcome);
    if (rc == CLI_DONE && str_is(json_str(json_object_get(s->answer, "status")), "rejected"))
        rc = CLI_REFUSED;
    return rc;
}

static enum cli_exit entity_update(struct session *s)
{
    enum cli_exit rc = write_signal(s);
    if (rc != CLI_DONE)
        return rc;
    if (options_has(&s->opt, "dedup-key")) {
        session_add_text(s, "dedup_key", "dedup-key");
    } else {
        json_add_name(&s->out, "dedup_key");
        buf_put_char(&s->body, '"');
        buf_put_uuid(&s->body, env_new_id(&ENV_SYSTEM));
        buf_put_char(&s->body, '"');
    }
    json_close(&s->out, '}');
    entity_path(s, "/updates");
    session_query(s, "wait_ms", options_text(&s->opt, "wait-ms"));
    s->wait_ms = options_number(&s->opt, "wait-ms", ASK_WAIT_MS_DEFAULT);
    return call_for_outcome(s, "POST");
}

static enum cli_exit entity_outcome(struct session *s)
{
    entity_path(s, "/updates/");
    session_path_on(s, s->args[2], "");
    return call_for_outcome(s, "GET");
}

/* --- read --- */

static void show_entity(struct session *s, json_t *answer)
{
    (void)s;
    json_t *timers = json_take(answer, "timers");
    object_print(stdout, answer);
    if (json_array_size(timers) > 0) {
        putchar('\n');
        rows_print(stdout, TIMER_COLUMNS, ARRAY_LEN(TIMER_COLUMNS), timers);
    }
    json_decref(timers);
}

static enum cli_exit entity_show(struct session *s)
{
    entity_path(s, "");
    return session_call(s, "GET", show_entity);
}

static enum cli_exit entity_list(struct session *s)
{
    session_path(s, ENTITIES, s->args[0], "");
    session_query(s, "version", options_text(&s->opt, "version"));
    return session_pages(s, ENTITY_COLUMNS, ARRAY_LEN(ENTITY_COLUMNS));
}

static enum cli_exit entity_events(struct session *s)
{
    entity_path(s, "/events");
    return session_pages(s, EVENT_COLUMNS, ARRAY_LEN(EVENT_COLUMNS));
}

static enum cli_exit entity_generations(struct session *s)
{
    entity_path(s, "/generations");
    return session_pages(s, GENERATION_COLUMNS, ARRAY_LEN(GENERATION_COLUMNS));
}

/* --- change --- */

static void show_migrated(struct session *s, json_t *answer)
{
    printf("%s %s ", s->args[0], s->args[1]);
    value_print(stdout, json_object_get(answer, "status"));
    fputs("  from ", stdout);
    value_print(stdout, json_object_get(answer, "from"));
    fputs(" to ", stdout);
    value_print(stdout, json_object_get(answer, "to"));
    putchar('\n');
}

static enum cli_exit entity_migrate(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_number(s, "version", "version");
    json_close(&s->out, '}');
    entity_path(s, "/migrate");
    return session_call(s, "POST", show_migrated);
}

static void show_deleted(struct session *s, json_t *answer)
{
    (void)answer;
    printf("%s %s deleted\n", s->args[0], s->args[1]);
}

static enum cli_exit entity_delete(struct session *s)
{
    entity_path(s, "");
    return session_call(s, "DELETE", show_deleted);
}
