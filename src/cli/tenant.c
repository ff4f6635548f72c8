/* pawl tenant: the limits of each tenant. */
#include "cli/commands.h"

static const char TENANTS[] = "/api/v1/tenants/";

static const struct flag FLAGS_SET[] = {
    {.name = "name", .value = "TEXT", .help = "for people"},
    {.name = "max-concurrent-runs",
     .value = "N|none",
     .help = "runs at the same time",
     .number = true,
     .word = "none"},
    {.name = "max-queued-runs",
     .value = "N|none",
     .help = "runs that wait for a slot",
     .number = true,
     .word = "none"},
    {.name = "at-limit", .value = "POLICY", .help = "what a start meets when the limit is reached"},
    {.name = "idempotency-retention-s",
     .value = "N|forever",
     .help = "how long keys are remembered",
     .number = true,
     .word = "forever"},
    {.name = "weight", .value = "N", .help = "its share of the workers", .number = true, .min = 1},
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

static enum cli_exit tenant_set(struct session *s);
static enum cli_exit tenant_show(struct session *s);
static enum cli_exit tenant_list(struct session *s);

static const struct verb VERBS[] = {
    {.name = "set",
     .arg = "ID",
     .about = "create a tenant, or change what is given",
     .flags = FLAGS_SET,
     .run = tenant_set,
     .store = true},
    {.name = "show",
     .arg = "ID",
     .about = "one tenant and its runs in numbers",
     .run = tenant_show,
     .store = true},
    {.name = "list", .about = "all tenants", .run = tenant_list, .store = true},
};

const struct command COMMAND_TENANT = {"tenant", VERBS, ARRAY_LEN(VERBS)};

static enum cli_exit tenant_set(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_text(s, "name", "name");
    session_add_number(s, "max_concurrent_runs", "max-concurrent-runs");
    session_add_number(s, "max_queued_runs", "max-queued-runs");
    session_add_text(s, "at_limit", "at-limit");
    session_add_number(s, "idempotency_retention_s", "idempotency-retention-s");
    session_add_number(s, "weight", "weight");
    json_close(&s->out, '}');
    session_path(s, TENANTS, s->arg, "");
    return session_call(s, "PUT", session_show_object);
}

static enum cli_exit tenant_show(struct session *s)
{
    session_path(s, TENANTS, s->arg, "");
    return session_call(s, "GET", session_show_object);
}

static enum cli_exit tenant_list(struct session *s)
{
    session_path(s, "/api/v1/tenants", "", "");
    return session_list(s, LIST_COLUMNS, ARRAY_LEN(LIST_COLUMNS), NULL, true);
}
