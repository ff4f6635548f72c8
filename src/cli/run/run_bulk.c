/* pawl run bulk: changes all runs that match a filter. */
#include "base/limits.h"
#include "cli/run/run_verbs.h"

const struct run_filter RUN_FILTER[RUN_FILTER_COUNT] = {
    {"status", "status"},
    {"workflow", "workflow_id"},
    {"label", "label"},
    {"created-after", "created_after"},
    {"created-before", "created_before"},
};

const struct option OPTIONS_RUN_BULK[] = {
    RUN_FILTER_OPTIONS,
    {.name = "all", .kind = OPTION_SWITCH, .help = "All runs; allows no other filter"},
    {.name = "reason", .value = "TEXT", .help = "The reason, for the timelines"},
    {.name = "dry-run", .kind = OPTION_SWITCH, .help = "Only count the runs; change nothing"},
    {.name = NULL},
};

struct bulk_total {
    json_int_t matched;
    json_int_t changed;
    json_int_t unchanged;
    size_t refused;
};

/* All runs only by --all: a forgotten filter must not mean every run. */
static bool check_filter(const struct session *s)
{
    bool all = options_has(&s->opt, "all"), any = false;
    for (size_t i = 0; i < RUN_FILTER_COUNT; i++)
        any |= options_has(&s->opt, RUN_FILTER[i].option);
    if (any != all)
        return true;
    fprintf(stderr,
            all ? "pawl: Use either --all or a filter, not both\n"
                : "pawl: Missing filter: name the runs with --status, --workflow, --label or "
                  "--created-…, or use --all\n");
    return false;
}

static void write_bulk(struct session *s, const json_t *cursor)
{
    buf_clear(&s->body);
    s->out = json_out_to(&s->body);
    json_open(&s->out, NULL, '{');
    json_add_text(&s->out, "action", str_of(s->args[0]));
    json_open(&s->out, "filter", '{');
    for (size_t i = 0; i < RUN_FILTER_COUNT; i++)
        session_add_text(s, RUN_FILTER[i].member, RUN_FILTER[i].option);
    json_close(&s->out, '}');
    json_add_bool(&s->out, "dry_run", options_has(&s->opt, "dry-run"));
    session_add_text(s, "reason", "reason");
    if (json_is_string(cursor))
        json_add_text(&s->out, "cursor", json_str(cursor));
    json_close(&s->out, '}');
}

static void add_total(struct bulk_total *t, const json_t *answer)
{
    size_t i;
    json_t *refused;
    t->matched += json_integer_value(json_object_get(answer, "matched"));
    t->changed += json_integer_value(json_object_get(answer, "changed"));
    t->unchanged += json_integer_value(json_object_get(answer, "unchanged"));
    json_array_foreach (json_object_get(answer, "refused"), i, refused) {
        t->refused++;
        fputs("pawl: ", stderr);
        value_print(stderr, json_object_get(refused, "run_id"));
        fputs(": ", stderr);
        value_print(stderr, json_object_get(refused, "code"));
        fputs(": ", stderr);
        value_print(stderr, json_object_get(refused, "detail"));
        fputc('\n', stderr);
    }
}

static void print_total(const struct session *s, const struct bulk_total *t)
{
    printf("%lld runs", (long long)t->matched);
    if (!options_has(&s->opt, "dry-run"))
        printf(": %lld changed, %lld unchanged, %zu refused", (long long)t->changed,
               (long long)t->unchanged, t->refused);
    putchar('\n');
}

/* The server changes a part at a time; each part has an idempotency key of its own. */
enum cli_exit run_bulk(struct session *s)
{
    struct bulk_total total = {0};
    const char *key = s->idempotency_key;
    json_t *cursor = NULL;
    enum cli_exit rc;
    if (!check_filter(s))
        return CLI_USAGE;
    session_path(s, "/api/v1/runs:bulk", "", "");
    do {
        char part[IDEM_KEY_MAX + 32];
        write_bulk(s, cursor);
        if (key != NULL && cursor != NULL) {
            (void)snprintf(part, sizeof(part), "%s:%s", key, json_string_value(cursor));
            s->idempotency_key = part;
        }
        rc = session_call(s, "POST", NULL);
        s->idempotency_key = key;
        if (rc != CLI_DONE)
            break;
        add_total(&total, s->answer);
        json_decref(cursor);
        cursor = json_incref(json_object_get(s->answer, "next_cursor"));
    } while (json_is_string(cursor));
    json_decref(cursor);
    if (!s->json && (rc == CLI_DONE || total.matched > 0))
        print_total(s, &total);
    return rc == CLI_DONE && total.refused > 0 ? CLI_REFUSED : rc;
}
