/* pawl tenant: settings of tenants, with their history. */
#include "base/limits.h"
#include "cli/commands.h"

static const char TENANTS[] = "/api/v1/tenants/";

static const struct option OPTIONS_SET[] = {
    {.name = "name", .value = "TEXT", .help = "A name for people"},
    {.name = "max-concurrent-runs",
     .kind = OPTION_NUMBER,
     .value = "N|none",
     .word = "none",
     .help = "How many runs may be active at a time"},
    {.name = "max-queued-runs",
     .kind = OPTION_NUMBER,
     .value = "N|none",
     .word = "none",
     .help = "How many runs may wait in the queue"},
    {.name = "at-limit",
     .kind = OPTION_CHOICE,
     .value = "POLICY",
     .choices = "reject|queue|cancel_oldest|coalesce",
     .help = "What happens to a start when a limit is reached"},
    {.name = "idempotency-retention-s",
     .kind = OPTION_NUMBER,
     .value = "N|forever",
     .word = "forever",
     .unit = "seconds",
     .help = "How many seconds to remember idempotency keys"},
    {.name = "run-retention-s",
     .kind = OPTION_NUMBER,
     .value = "N|forever",
     .word = "forever",
     .unit = "seconds",
     .help = "How many seconds to keep runs that have ended"},
    {.name = "weight",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .help = "The tenant's share of the workers, compared with other tenants"},
    {.name = "rate-per-second",
     .kind = OPTION_NUMBER,
     .value = "N|none",
     .min = 1,
     .word = "none",
     .help = "How many runs may start per second; needs --rate-burst"},
    {.name = "rate-burst",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .help = "How many runs may start at once after a pause"},
    {.name = "gate",
     .kind = OPTION_CHOICE,
     .choices = "store|redis",
     .help = "Which gate the tenant's starts pass; the other --gate options ask for redis too"},
    {.name = "gate-policy",
     .kind = OPTION_CHOICE,
     .value = "POLICY",
     .choices = "fixed|full_jitter|equal_jitter|decorrelated",
     .help = "How retries at a busy gate are spaced"},
    {.name = "gate-max-wait-ms",
     .kind = OPTION_NUMBER,
     .value = "N|default",
     .word = "default",
     .unit = "milliseconds",
     .help = "How many milliseconds a start waits for the gate"},
    {.name = "gate-retry-delay-ms",
     .kind = OPTION_NUMBER,
     .value = "N|default",
     .word = "default",
     .unit = "milliseconds",
     .help = "The base delay between those retries"},
    {.name = "gate-lock-ttl-ms",
     .kind = OPTION_NUMBER,
     .value = "N|default",
     .min = 1,
     .word = "default",
     .unit = "milliseconds",
     .help = "When the lock of a holder that died expires"},
    {.name = NULL},
};
static const struct option OPTIONS_ROLLBACK[] = {
    {.name = "to",
     .kind = OPTION_NUMBER,
     .value = "VERSION",
     .min = 1,
     .help = "A version from `pawl tenant history` (default: the one before the current)"},
    {.name = NULL},
};

static const struct column LIST_COLUMNS[] = {
    {"ID", "id"},
    {"NAME", "name"},
    {"MAX CONCURRENT", "max_concurrent_runs"},
    {"MAX QUEUED", "max_queued_runs"},
    {"AT LIMIT", "at_limit"},
    {"ACTIVE", "active_runs"},
    {"QUEUED", "queued_runs"},
    {"WEIGHT", "weight"},
};

static const struct column HISTORY_COLUMNS[] = {
    {"VERSION", "version"},
    {"AT", "at"},
    {"BY", "actor"},
    {"CHANGED", "changed"},
};

static enum cli_exit tenant_set(struct session *s);
static enum cli_exit tenant_show(struct session *s);
static enum cli_exit tenant_list(struct session *s);
static enum cli_exit tenant_history(struct session *s);
static enum cli_exit tenant_rollback(struct session *s);

static const struct verb VERBS[] = {
    {.name = "set",
     .arguments = "ID",
     .about = "Create a tenant, or change the settings that are given",
     .notes = "The --gate options need a server that runs with --gate redis://….\n",
     .options = OPTIONS_SET,
     .run = tenant_set,
     .store = true},
    {.name = "show",
     .arguments = "ID",
     .about = "Show the settings of a tenant and its numbers of runs",
     .run = tenant_show,
     .store = true},
    {.name = "list", .about = "List all tenants", .run = tenant_list, .store = true},
    {.name = "history",
     .arguments = "ID",
     .about = "List the versions of a tenant's settings, newest first, and what each changed",
     .run = tenant_history,
     .store = true},
    {.name = "rollback",
     .arguments = "ID",
     .about = "Restore earlier settings of a tenant",
     .options = OPTIONS_ROLLBACK,
     .run = tenant_rollback,
     .store = true},
};

const struct command COMMAND_TENANT = {"tenant", "Set the limits of tenants", VERBS,
                                       ARRAY_LEN(VERBS)};

/* --- set --- */

/* Both numbers, or `none` to remove the limit. */
static enum cli_exit add_rate_limit(struct session *s)
{
    const char *per_second = options_text(&s->opt, "rate-per-second");
    const char *burst = options_text(&s->opt, "rate-burst");
    if (per_second == NULL && burst == NULL)
        return CLI_DONE;
    bool none = per_second != NULL && strcmp(per_second, "none") == 0;
    if (per_second == NULL || none == (burst != NULL)) {
        fprintf(stderr, "pawl: --rate-per-second and --rate-burst need each other; to remove "
                        "the limit, use --rate-per-second none\n");
        return CLI_USAGE;
    }
    if (none) {
        json_add_null(&s->out, "rate_limit");
        return CLI_DONE;
    }
    json_open(&s->out, "rate_limit", '{');
    session_add_number(s, "per_second", "rate-per-second");
    session_add_number(s, "burst", "rate-burst");
    json_close(&s->out, '}');
    return CLI_DONE;
}

static const struct {
    const char *member;
    const char *option;
} GATE_NUMBERS[] = {
    {"max_wait_ms", "gate-max-wait-ms"},
    {"lock_ttl_ms", "gate-lock-ttl-ms"},
    {"retry_delay_ms", "gate-retry-delay-ms"},
};

/* How a start waits; the gate itself apart. */
static bool changes_waiting(const struct session *s)
{
    bool any = options_has(&s->opt, "gate-policy");
    for (size_t i = 0; i < ARRAY_LEN(GATE_NUMBERS); i++)
        any |= options_has(&s->opt, GATE_NUMBERS[i].option);
    return any;
}

/* The tenant's current gate settings, owned by the caller; NULL when there is no tenant. */
static enum cli_exit read_gate(struct session *s, json_t **ret)
{
    struct request req = {.method = "GET", .path = buf_str(&s->path)};
    *ret = NULL;
    enum cli_exit rc = client_send(&s->client, &req, &s->reply);
    if (rc != CLI_DONE) {
        session_unreachable(s);
        return rc;
    }
    if (s->reply.status == 404)
        return CLI_DONE;
    if (s->reply.status >= 300) {
        session_refused(s);
        return CLI_REFUSED;
    }
    json_t *tenant = json_loadb(s->reply.body.ptr, s->reply.body.len, 0, NULL);
    *ret = json_incref(json_object_get(tenant, "gate"));
    json_decref(tenant);
    if (*ret != NULL)
        return CLI_DONE;
    fprintf(stderr,
            "pawl: The server does not report the tenant's gate settings; nothing was changed\n");
    return CLI_REFUSED;
}

/* The server replaces `gate` as a whole, so the settings that are not given are sent as they are.
 */
static enum cli_exit add_gate(struct session *s)
{
    const char *kind = options_text(&s->opt, "gate");
    if (kind == NULL && !changes_waiting(s))
        return CLI_DONE;
    if (kind != NULL && strcmp(kind, "store") == 0) {
        if (!changes_waiting(s)) {
            json_add_null(&s->out, "gate");
            return CLI_DONE;
        }
        fprintf(stderr, "pawl: --gate store takes no other --gate options: nobody waits there\n");
        return CLI_USAGE;
    }
    json_t *kept;
    enum cli_exit rc = read_gate(s, &kept);
    if (rc != CLI_DONE)
        return rc;
    json_open(&s->out, "gate", '{');
    session_add_text(s, "kind", "gate");
    for (size_t i = 0; i < ARRAY_LEN(GATE_NUMBERS); i++) {
        const json_t *value = json_object_get(kept, GATE_NUMBERS[i].member);
        if (options_has(&s->opt, GATE_NUMBERS[i].option))
            session_add_number(s, GATE_NUMBERS[i].member, GATE_NUMBERS[i].option);
        else if (value != NULL)
            json_add_int(&s->out, GATE_NUMBERS[i].member, json_integer_value(value));
    }
    if (options_has(&s->opt, "gate-policy"))
        session_add_text(s, "policy", "gate-policy");
    else if (kept != NULL)
        json_add_text_or_null(&s->out, "policy", json_str(json_object_get(kept, "policy")));
    json_close(&s->out, '}');
    json_decref(kept);
    return CLI_DONE;
}

static enum cli_exit tenant_set(struct session *s)
{
    session_path(s, TENANTS, s->args[0], "");
    json_open(&s->out, NULL, '{');
    session_add_text(s, "name", "name");
    session_add_number(s, "max_concurrent_runs", "max-concurrent-runs");
    session_add_number(s, "max_queued_runs", "max-queued-runs");
    session_add_text(s, "at_limit", "at-limit");
    session_add_number(s, "idempotency_retention_s", "idempotency-retention-s");
    session_add_number(s, "run_retention_s", "run-retention-s");
    session_add_number(s, "weight", "weight");
    enum cli_exit rc = add_rate_limit(s);
    if (rc != CLI_DONE)
        return rc;
    rc = add_gate(s);
    if (rc != CLI_DONE)
        return rc;
    json_close(&s->out, '}');
    return session_call(s, "PUT", session_show_object);
}

/* --- looking at tenants --- */

static enum cli_exit tenant_show(struct session *s)
{
    session_path(s, TENANTS, s->args[0], "");
    return session_call(s, "GET", session_show_object);
}

static enum cli_exit tenant_list(struct session *s)
{
    session_path(s, "/api/v1/tenants", "", "");
    return session_list(s, LIST_COLUMNS, ARRAY_LEN(LIST_COLUMNS), NULL, true);
}

/* --- earlier settings --- */

/* "gate.max_wait_ms 50 (was 2000)" */
static void put_change(struct buf *out, const char *prefix, const char *name, const json_t *value,
                       const json_t *before)
{
    buf_printf(out, "%s%s%s ", out->len > 0 ? ", " : "", prefix, name);
    json_put_plain(out, value);
    if (before == NULL) /* older settings do not have it */
        return;
    buf_put(out, STR(" (was "));
    json_put_plain(out, before);
    buf_put_char(out, ')');
}

static void put_changes(struct buf *out, const char *prefix, json_t *settings, json_t *older)
{
    const char *name;
    json_t *value;
    json_object_foreach (settings, name, value) {
        json_t *before = json_object_get(older, name);
        if (json_is_object(value) && json_is_object(before)) {
            char inner[64];
            (void)snprintf(inner, sizeof(inner), "%s.", name);
            put_changes(out, inner, value, before);
        } else if (!json_equal(value, before)) {
            put_change(out, prefix, name, value, before);
        }
    }
}

/* The oldest version has nothing to compare with: list what it sets. */
static void put_settings(struct buf *out, json_t *settings)
{
    const char *name;
    json_t *value;
    json_object_foreach (settings, name, value) {
        if (json_is_null(value))
            continue;
        buf_printf(out, "%s%s ", out->len > 0 ? ", " : "", name);
        json_put_plain(out, value);
    }
}

static void show_history(struct session *s, json_t *answer)
{
    (void)s;
    static_assert(SETTINGS_KEPT_MAX <= PAGE_MAX, "all that is kept fits into one page");
    size_t i;
    json_t *item;
    json_t *items = json_object_get(answer, "items");
    json_array_foreach (items, i, item) {
        struct buf changed;
        buf_init(&changed, 64 * KIB);
        json_t *settings = json_object_get(item, "settings");
        json_t *older = json_object_get(json_array_get(items, i + 1), "settings");
        if (older != NULL)
            put_changes(&changed, "", settings, older);
        else
            put_settings(&changed, settings);
        if (changed.len > 0)
            (void)json_object_set_new(item, "changed", json_stringn(changed.ptr, changed.len));
        buf_release(&changed);
    }
    rows_print(stdout, HISTORY_COLUMNS, ARRAY_LEN(HISTORY_COLUMNS), items);
}

static enum cli_exit tenant_history(struct session *s)
{
    char most[16];
    (void)snprintf(most, sizeof(most), "%d", PAGE_MAX);
    session_path(s, TENANTS, s->args[0], "/settings");
    session_query(s, "limit", most);
    return session_call(s, "GET", show_history);
}

static enum cli_exit tenant_rollback(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_number(s, "version", "to");
    json_close(&s->out, '}');
    session_path(s, TENANTS, s->args[0], "/rollback");
    return session_call(s, "POST", session_show_object);
}
