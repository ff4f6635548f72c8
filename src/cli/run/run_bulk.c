/* pawl run bulk: changes all runs that match a filter. */
#include "base/limits.h"
#include "cli/run/run_verbs.h"
#include "cli/term/progress.h"

#include <unistd.h>

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
    {.name = "yes", .kind = OPTION_SWITCH, .help = "Do not ask for confirmation"},
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

const char *run_filter_value(const struct session *s, size_t i, char *room, size_t size, bool *ok)
{
    const char *value = options_text(&s->opt, RUN_FILTER[i].option);
    struct str name, rest;
    if (value == NULL || strcmp(RUN_FILTER[i].option, "label") != 0)
        return value;
    if (!str_cut(str_of(value), '=', &name, &rest) || name.len == 0 || str_of(value).len >= size) {
        fprintf(stderr, "pawl: --label must be KEY=VALUE, not \"%s\"\n", value);
        *ok = false;
        return NULL;
    }
    (void)snprintf(room, size, "%.*s:%.*s", STR_ARG(name), STR_ARG(rest));
    return room;
}

/* False when a filter is wrong. */
static bool write_bulk(struct session *s, const json_t *cursor, bool dry_run)
{
    bool ok = true;
    buf_clear(&s->body);
    s->out = json_out_to(&s->body);
    json_open(&s->out, NULL, '{');
    json_add_text(&s->out, "action", str_of(s->args[0]));
    json_open(&s->out, "filter", '{');
    for (size_t i = 0; i < RUN_FILTER_COUNT && ok; i++) {
        char room[TEXT_MAX];
        const char *value = run_filter_value(s, i, room, sizeof(room), &ok);
        if (value != NULL)
            json_add_text(&s->out, RUN_FILTER[i].member, str_of(value));
    }
    json_close(&s->out, '}');
    json_add_bool(&s->out, "dry_run", dry_run);
    session_add_text(s, "reason", "reason");
    if (json_is_string(cursor))
        json_add_text(&s->out, "cursor", json_str(cursor));
    json_close(&s->out, '}');
    return ok;
}

static void add_total(struct bulk_total *t, const json_t *answer, bool tells_refusals)
{
    size_t i;
    json_t *refused;
    t->matched += json_integer_value(json_object_get(answer, "matched"));
    t->changed += json_integer_value(json_object_get(answer, "changed"));
    t->unchanged += json_integer_value(json_object_get(answer, "unchanged"));
    json_array_foreach (json_object_get(answer, "refused"), i, refused) {
        t->refused++;
        if (!tells_refusals)
            continue;
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

/* Sends every part; the server changes a part at a time, each under an idempotency key of its own.
 */
static enum cli_exit send_parts(struct session *s, bool dry_run, bool is_count,
                                struct progress *progress, struct bulk_total *total)
{
    const char *key = s->idempotency_key;
    json_t *cursor = NULL;
    enum cli_exit rc;
    session_path(s, "/api/v1/runs:bulk", "", "");
    do {
        char part[IDEM_KEY_MAX + 32];
        if (!write_bulk(s, cursor, dry_run))
            return CLI_USAGE;
        if (key != NULL && cursor != NULL) {
            (void)snprintf(part, sizeof(part), "%s:%s", key, json_string_value(cursor));
            s->idempotency_key = part;
        }
        s->idempotency_key = is_count ? NULL : s->idempotency_key;
        rc = is_count ? session_call_silently(s, "POST") : session_call(s, "POST", NULL);
        s->idempotency_key = key;
        if (rc != CLI_DONE)
            break;
        add_total(total, s->answer, !is_count);
        progress_update(progress, total->matched);
        json_decref(cursor);
        cursor = json_incref(json_object_get(s->answer, "next_cursor"));
    } while (json_is_string(cursor));
    json_decref(cursor);
    return rc;
}

static bool is_yes(const char *answer)
{
    return answer[0] == 'y' || answer[0] == 'Y';
}

/* Counts the runs and asks; *ret_count: how many. */
static enum cli_exit confirm(struct session *s, int64_t *ret_count)
{
    char answer[16] = "";
    struct bulk_total counted = {0};
    if (isatty(STDIN_FILENO) != 1) {
        fprintf(stderr, "pawl: Add --yes to %s all runs that match, or --dry-run to count them\n",
                s->args[0]);
        return CLI_USAGE;
    }
    struct progress progress = progress_begin("runs", 0);
    enum cli_exit rc = send_parts(s, true, true, &progress, &counted);
    progress_end(&progress);
    if (rc != CLI_DONE)
        return rc;
    fprintf(stderr, "%s %lld runs? [y/N] ", s->args[0], (long long)counted.matched);
    (void)fflush(stderr);
    if (fgets(answer, sizeof(answer), stdin) == NULL || !is_yes(answer)) {
        fputs("Nothing was changed\n", stderr);
        return CLI_REFUSED;
    }
    *ret_count = counted.matched;
    return CLI_DONE;
}

enum cli_exit run_bulk(struct session *s)
{
    struct bulk_total total = {0};
    bool dry_run = options_has(&s->opt, "dry-run");
    int64_t expected = 0;
    if (!check_filter(s))
        return CLI_USAGE;
    enum cli_exit rc = CLI_DONE;
    if (!dry_run && !options_has(&s->opt, "yes"))
        rc = confirm(s, &expected);
    if (rc != CLI_DONE)
        return rc;
    struct progress progress = progress_begin("runs", expected);
    rc = send_parts(s, dry_run, false, &progress, &total);
    progress_end(&progress);
    if (!s->json && (rc == CLI_DONE || total.matched > 0))
        print_total(s, &total);
    return rc == CLI_DONE && total.refused > 0 ? CLI_REFUSED : rc;
}
