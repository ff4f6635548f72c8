/* pawl entity type, pawl entity stats: the types of entities. */
#include "cli/entity_type.h"

#include "cli/term/width.h"

enum { AGE_WIDTH = 9, BAR_WIDTH = 40 };

static const char TYPES[] = "/api/v1/entity-types/";

const struct option OPTIONS_ENTITY_TYPE_SET[] = {
    {.name = "queue",
     .value = "QUEUE",
     .help = "The queue that its workers serve",
     .required = true},
    {.name = "handler",
     .value = "HANDLER",
     .help = "The name of the worker's code for this type",
     .required = true},
    {.name = "version",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .help = "The version to set (default: the newest). Entities keep their version until they "
             "are migrated"},
    {.name = "dedup-window-s",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .unit = "seconds",
     .help = "How many seconds to remember the dedup keys of signals (default 259200)"},
    {.name = "dedup-max-keys",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .help = "How many dedup keys an entity remembers (default 10000)"},
    {.name = "rollover-events",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 2,
     .help = "How many events a generation has before the next one starts (default 200)"},
    {.name = "keep-generations",
     .kind = OPTION_NUMBER,
     .value = "N|all",
     .word = "all",
     .help = "How many earlier generations to keep (default 10)"},
    {.name = "max-inbox",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .help = "How many signals may wait (default 100000)"},
    {.name = "max-batch",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .help = "How many signals the handler gets in one call (default 100)"},
    {.name = "max-attempts",
     .kind = OPTION_NUMBER,
     .value = "N",
     .help = "How often a call is tried (default 0: until it succeeds)"},
    {.name = "backoff-ms",
     .kind = OPTION_NUMBER,
     .value = "N",
     .unit = "milliseconds",
     .help = "Delay before the second attempt (default 1000)"},
    {.name = "max-backoff-ms",
     .kind = OPTION_NUMBER,
     .value = "N",
     .unit = "milliseconds",
     .help = "Longest delay before an attempt (default 300000)"},
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
enum cli_exit entity_type_set(struct session *s)
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
    session_path(s, TYPES, s->args[0], "");
    return session_call(s, "PUT", session_show_object);
}

enum cli_exit entity_type_list(struct session *s)
{
    session_path(s, "/api/v1/entity-types", "", "");
    return session_pages(s, TYPE_COLUMNS, ARRAY_LEN(TYPE_COLUMNS));
}

static void show_type(struct session *s, json_t *answer)
{
    (void)s;
    json_t *versions = json_take(answer, "versions");
    object_print(stdout, answer);
    putchar('\n');
    rows_print(stdout, VERSION_COLUMNS, ARRAY_LEN(VERSION_COLUMNS), versions);
    json_decref(versions);
}

enum cli_exit entity_type_show(struct session *s)
{
    session_path(s, TYPES, s->args[0], "");
    return session_call(s, "GET", show_type);
}

/* --- stats --- */

static int64_t number_of(const json_t *object, const char *member)
{
    return json_integer_value(json_object_get(object, member));
}

static double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* As wide as its share; late duplicates are drawn in another shade. */
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
    printf("%-*s%11s%11s%8s\n", AGE_WIDTH, "AGE", "DUPLICATES", "LATE", "SHARE");
    json_array_foreach (histogram, i, row) {
        int64_t duplicates = number_of(row, "duplicates");
        int64_t late = number_of(row, "late");
        struct str age = json_str(json_object_get(row, "age"));
        int pad = AGE_WIDTH - (int)MIN(text_width(age), (size_t)AGE_WIDTH);
        printf("%.*s%*s%11lld%11lld%7.1f%%%s", STR_ARG(age), pad, "", (long long)duplicates,
               (long long)late, share_of(duplicates + late, all),
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
    printf(": keys are remembered for %lld s, up to %lld per entity; counted since ",
           (long long)number_of(answer, "window_s"), (long long)number_of(answer, "max_keys"));
    value_print(stdout, json_object_get(answer, "since"));
    printf("\nsignals with a key: %lld\n", (long long)signals);
    printf("duplicates: %lld, %.1f%% of them\n", (long long)duplicates,
           share_of(duplicates, signals));
    printf("late duplicates: %lld, which counted as new: %.1f%% of all duplicates\n",
           (long long)late, share_of(late, duplicates + late));
    printf("keys forgotten by age: %lld, by count: %lld\n\n",
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

enum cli_exit entity_type_stats(struct session *s)
{
    session_path(s, TYPES, s->args[0], "/stats");
    return session_call(s, "GET", show_stats);
}
