/* pawl entity: types of entities, signals and updates to them, and how they are. */
#include "base/env.h"
#include "base/limits.h"
#include "cli/commands.h"

enum { BAR_WIDTH = 40 };

static const char TYPES[] = "/api/v1/entity-types/";
static const char ENTITIES[] = "/api/v1/entities/";

static const struct flag FLAGS_SET[] = {
    {.name = "queue", .value = "Q", .help = "where its calls wait for a worker", .required = true},
    {.name = "handler", .value = "H", .help = "what the worker calls", .required = true},
    {.name = "version",
     .value = "N",
     .help = "a new one leaves entities as they are until they migrate; default: the newest",
     .number = true,
     .min = 1},
    {.name = "dedup-window-s",
     .value = "N",
     .help = "how long a signal's key is known; default 259200",
     .number = true,
     .min = 1},
    {.name = "dedup-max-keys",
     .value = "N",
     .help = "how many keys one entity knows; default 10000",
     .number = true,
     .min = 1},
    {.name = "rollover-events",
     .value = "N",
     .help = "events of one generation; default 200",
     .number = true,
     .min = 2},
    {.name = "keep-generations",
     .value = "N|all",
     .help = "earlier ones that can be read; default 10",
     .number = true,
     .word = "all"},
    {.name = "max-inbox",
     .value = "N",
     .help = "signals that may wait; default 100000",
     .number = true,
     .min = 1},
    {.name = "max-batch",
     .value = "N",
     .help = "signals in one call; default 100",
     .number = true,
     .min = 1},
    {.name = "max-attempts",
     .value = "N",
     .help = "of one call; default 0: until one succeeds",
     .number = true},
    {.name = "backoff-ms",
     .value = "N",
     .help = "before the second attempt; default 1000",
     .number = true},
    {.name = "max-backoff-ms",
     .value = "N",
     .help = "before a later one at most; default 300000",
     .number = true},
    {.name = NULL},
};
static const struct flag FLAGS_SIGNAL[] = {
    {.name = "dedup-key", .value = "K", .help = "the same again counts as one"},
    {.name = NULL},
};
static const struct flag FLAGS_UPDATE[] = {
    {.name = "dedup-key",
     .value = "K",
     .help = "the same again gets the same answer; default: a new one"},
    {.name = "wait-ms",
     .value = "N",
     .help = "for the answer, at most that long; default 10000",
     .number = true,
     .max = RUN_WAIT_MS_MAX},
    {.name = NULL},
};
static const struct flag FLAGS_LIST[] = {
    {.name = "version",
     .value = "N",
     .help = "only those of this version of the type",
     .number = true,
     .min = 1},
    SESSION_PAGE_FLAGS,
    {.name = NULL},
};
static const struct flag FLAGS_PAGES[] = {SESSION_PAGE_FLAGS, {.name = NULL}};
static const struct flag FLAGS_MIGRATE[] = {
    {.name = "version", .value = "N", .help = "default: the newest", .number = true, .min = 1},
    {.name = NULL},
};

static const struct column TYPE_COLUMNS[] = {
    {"TYPE", "type"},
    {"VERSION", "version"},
    {"CREATED", "created_at"},
    {"UPDATED", "updated_at"},
};
static const struct column VERSION_COLUMNS[] = {
    {"VERSION", "version"},         {"QUEUE", "queue"},
    {"HANDLER", "handler"},         {"WINDOW S", "dedup_window_s"},
    {"MAX KEYS", "dedup_max_keys"}, {"ROLLOVER", "rollover_events"},
    {"KEEP", "keep_generations"},   {"UPDATED", "updated_at"},
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

static enum cli_exit type_set(struct session *s);
static enum cli_exit type_list(struct session *s);
static enum cli_exit type_show(struct session *s);
static enum cli_exit entity_signal(struct session *s);
static enum cli_exit entity_update(struct session *s);
static enum cli_exit entity_outcome(struct session *s);
static enum cli_exit entity_show(struct session *s);
static enum cli_exit entity_list(struct session *s);
static enum cli_exit entity_events(struct session *s);
static enum cli_exit entity_generations(struct session *s);
static enum cli_exit entity_migrate(struct session *s);
static enum cli_exit entity_delete(struct session *s);
static enum cli_exit entity_stats(struct session *s);

static const struct verb VERBS[] = {
    {.group = "type",
     .name = "set",
     .arg = "TYPE",
     .about = "make a type of entities, or say anew how it is handled",
     .flags = FLAGS_SET,
     .run = type_set},
    {.group = "type", .name = "list", .about = "the types", .flags = FLAGS_PAGES, .run = type_list},
    {.group = "type",
     .name = "show",
     .arg = "TYPE",
     .about = "one type with its versions",
     .run = type_show},
    {.name = "signal",
     .arg = "TYPE",
     .arg2 = "ID",
     .arg3 = "NAME",
     .arg4 = "[PAYLOAD]",
     .about = "tell an entity something; the first signal makes it",
     .notes =
         "PAYLOAD is JSON, @FILE or - for standard input. With --dedup-key the same signal may "
         "be sent again and\nagain: it counts once for as long as the entity knows the key.\n",
     .flags = FLAGS_SIGNAL,
     .run = entity_signal},
    {.name = "update",
     .arg = "TYPE",
     .arg2 = "ID",
     .arg3 = "NAME",
     .arg4 = "[PAYLOAD]",
     .about = "ask an entity something; exit code 1 when it says no",
     .notes = "PAYLOAD is JSON, @FILE or - for standard input. Without an answer in time it says "
              "so and ends with 0;\nthe same --dedup-key again, or pawl entity outcome, asks for "
              "it later.\n",
     .flags = FLAGS_UPDATE,
     .run = entity_update},
    {.name = "outcome",
     .arg = "TYPE",
     .arg2 = "ID",
     .arg3 = "SEQ",
     .about = "what came of an update; exit code 1 when it was refused",
     .run = entity_outcome},
    {.name = "show",
     .arg = "TYPE",
     .arg2 = "ID",
     .about = "one entity: state, timers, what waits",
     .run = entity_show},
    {.name = "list",
     .arg = "TYPE",
     .about = "the entities of a type, by id",
     .flags = FLAGS_LIST,
     .run = entity_list},
    {.name = "events",
     .arg = "TYPE",
     .arg2 = "ID",
     .about = "its timeline, across generations",
     .flags = FLAGS_PAGES,
     .run = entity_events},
    {.name = "generations",
     .arg = "TYPE",
     .arg2 = "ID",
     .about = "its generations, newest first",
     .flags = FLAGS_PAGES,
     .run = entity_generations},
    {.name = "migrate",
     .arg = "TYPE",
     .arg2 = "ID",
     .about = "take it to another version of its type",
     .flags = FLAGS_MIGRATE,
     .run = entity_migrate},
    {.name = "delete",
     .arg = "TYPE",
     .arg2 = "ID",
     .about = "everything of it, for good",
     .run = entity_delete},
    {.name = "stats",
     .arg = "TYPE",
     .about = "how late duplicates come: does the window fit?",
     .run = entity_stats},
};

const struct command COMMAND_ENTITY = {"entity", VERBS, ARRAY_LEN(VERBS)};

/* The path of the entity that the first two arguments name. */
static void entity_path(struct session *s, const char *suffix)
{
    session_path(s, ENTITIES, s->arg, "/");
    session_path_on(s, s->arg2, suffix);
}

static void print_rows(const struct column *columns, size_t column_count, const json_t *rows)
{
    struct table table;
    table_init(&table, columns, column_count);
    table_add(&table, rows);
    if (!table_print(&table, stdout))
        fprintf(stderr, "pawl: too many rows for a table: use --json\n");
    table_release(&table);
}

/* Takes a member out of the object: the caller owns it. */
static json_t *take(json_t *object, const char *member)
{
    json_t *value = json_incref(json_object_get(object, member));
    (void)json_object_del(object, member);
    return value;
}

/* --- types --- */

static enum cli_exit type_set(struct session *s)
{
    static const char *const NUMBERS[][2] = {
        {"version", "version"},
        {"dedup_window_s", "dedup-window-s"},
        {"dedup_max_keys", "dedup-max-keys"},
        {"rollover_events", "rollover-events"},
        {"keep_generations", "keep-generations"},
        {"max_inbox", "max-inbox"},
        {"max_batch", "max-batch"},
    };
    json_open(&s->out, NULL, '{');
    session_add_text(s, "queue", "queue");
    session_add_text(s, "handler", "handler");
    for (size_t i = 0; i < ARRAY_LEN(NUMBERS); i++)
        session_add_number(s, NUMBERS[i][0], NUMBERS[i][1]);
    json_open(&s->out, "retry", '{');
    session_add_number(s, "max_attempts", "max-attempts");
    session_add_number(s, "backoff_ms", "backoff-ms");
    session_add_number(s, "max_backoff_ms", "max-backoff-ms");
    json_close(&s->out, '}');
    json_close(&s->out, '}');
    session_path(s, TYPES, s->arg, "");
    return session_call(s, "PUT", session_show_object);
}

static enum cli_exit type_list(struct session *s)
{
    session_path(s, "/api/v1/entity-types", "", "");
    return session_pages(s, TYPE_COLUMNS, ARRAY_LEN(TYPE_COLUMNS));
}

static void show_type(struct session *s, json_t *answer)
{
    (void)s;
    json_t *versions = take(answer, "versions");
    object_print(stdout, answer);
    putchar('\n');
    print_rows(VERSION_COLUMNS, ARRAY_LEN(VERSION_COLUMNS), versions);
    json_decref(versions);
}

static enum cli_exit type_show(struct session *s)
{
    session_path(s, TYPES, s->arg, "");
    return session_call(s, "GET", show_type);
}

/* --- signals and updates --- */

static enum cli_exit write_signal(struct session *s)
{
    json_open(&s->out, NULL, '{');
    json_add_text(&s->out, "name", str_of(s->arg3));
    return session_add_json_arg(s, "payload", "PAYLOAD", s->arg4);
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

static enum cli_exit ask(struct session *s, const char *method)
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
    return ask(s, "POST");
}

static enum cli_exit entity_outcome(struct session *s)
{
    entity_path(s, "/updates/");
    session_path_on(s, s->arg3, "");
    return ask(s, "GET");
}

/* --- looking at entities --- */

static void show_entity(struct session *s, json_t *answer)
{
    (void)s;
    json_t *timers = take(answer, "timers");
    object_print(stdout, answer);
    if (json_array_size(timers) > 0) {
        putchar('\n');
        print_rows(TIMER_COLUMNS, ARRAY_LEN(TIMER_COLUMNS), timers);
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
    session_path(s, ENTITIES, s->arg, "");
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

/* --- changing them --- */

static void show_migrated(struct session *s, json_t *answer)
{
    printf("%s %s ", s->arg, s->arg2);
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
    printf("%s %s deleted\n", s->arg, s->arg2);
}

static enum cli_exit entity_delete(struct session *s)
{
    entity_path(s, "");
    return session_call(s, "DELETE", show_deleted);
}

/* --- how the window fits --- */

static int64_t number_of(const json_t *object, const char *member)
{
    return json_integer_value(json_object_get(object, member));
}

static double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* As wide as its share; what came too late is drawn differently. */
static void print_bar(int64_t duplicates, int64_t late, int64_t most)
{
    if (most <= 0)
        return;
    int64_t width = ((duplicates + late) * BAR_WIDTH + most - 1) / most;
    int64_t light = late > 0 ? MAX(late * BAR_WIDTH / most, (int64_t)1) : 0;
    for (int64_t i = 0; i < width; i++)
        fputs(i < width - light ? "█" : "░", stdout);
}

static void print_histogram(const json_t *histogram, int64_t all)
{
    size_t i;
    const json_t *row;
    int64_t most = 0;
    json_array_foreach (histogram, i, row)
        most = MAX(most, number_of(row, "duplicates") + number_of(row, "late"));
    printf("%-9s%11s%11s%8s\n", "AGE", "DUPLICATES", "LATE", "SHARE");
    json_array_foreach (histogram, i, row) {
        int64_t duplicates = number_of(row, "duplicates");
        int64_t late = number_of(row, "late");
        struct str age = json_str(json_object_get(row, "age"));
        /* "≤" is one column and three bytes. */
        int pad = str_starts_with(age, STR("≤")) ? 11 : 9;
        printf("%-*s%11lld%11lld%7.1f%%%s", pad, age.ptr != NULL ? age.ptr : "",
               (long long)duplicates, (long long)late, share_of(duplicates + late, all),
               duplicates + late > 0 ? "  " : "");
        print_bar(duplicates, late, most);
        putchar('\n');
    }
}

static void print_within(const json_t *within, const char *member, const char *words)
{
    const json_t *age = json_object_get(json_object_get(within, member), "age");
    printf("%s ", words);
    value_print(stdout, age);
}

static void show_stats(struct session *s, json_t *answer)
{
    (void)s;
    int64_t duplicates = number_of(answer, "duplicates");
    int64_t late = number_of(answer, "late_duplicates");
    int64_t signals = number_of(answer, "signals_with_key");
    const json_t *within = json_object_get(answer, "duplicates_came_within");
    value_print(stdout, json_object_get(answer, "type"));
    printf(": keys are known for %lld s, and %lld of them; counted since ",
           (long long)number_of(answer, "window_s"), (long long)number_of(answer, "max_keys"));
    value_print(stdout, json_object_get(answer, "since"));
    printf("\nsignals with a key: %lld\n", (long long)signals);
    printf("duplicates: %lld, %.1f%% of them\n", (long long)duplicates,
           share_of(duplicates, signals));
    printf("late duplicates: %lld, which counted as new: %.1f%% of all duplicates\n",
           (long long)late, share_of(late, duplicates + late));
    printf("keys that left the window by age: %lld, by count: %lld\n\n",
           (long long)number_of(answer, "evicted_by_age"),
           (long long)number_of(answer, "evicted_by_count"));
    print_histogram(json_object_get(answer, "histogram"), duplicates + late);
    if (duplicates + late == 0)
        return;
    print_within(within, "p50", "\nhalf of them:");
    print_within(within, "p99", ", 99%:");
    print_within(within, "max", ", all:");
    putchar('\n');
}

static enum cli_exit entity_stats(struct session *s)
{
    session_path(s, TYPES, s->arg, "/stats");
    return session_call(s, "GET", show_stats);
}
