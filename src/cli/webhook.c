/* pawl webhook: sends events to URLs. */
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/names.h"

static const char WEBHOOKS[] = "/api/v1/webhooks/";

#define EVENT_OPTION(must)                                                                    \
    {                                                                                         \
        .name = "event", .value = "TYPE", .many = true, .required = (must),                   \
        .help = "Send events of this type: run.failed, a pattern such as run.*, or * for all" \
    }
#define DESCRIPTION_OPTION                                                  \
    {                                                                       \
        .name = "description", .value = "TEXT", .help = "A note for people" \
    }

static const struct option OPTIONS_CREATE[] = {
    {.name = "to", .value = "URL", .help = "Where to send the events", .required = true},
    EVENT_OPTION(true),
    DESCRIPTION_OPTION,
    {.name = NULL},
};
static const struct option OPTIONS_SET[] = {
    {.name = "to", .value = "URL", .help = "Send the events here from now on"},
    EVENT_OPTION(false),
    DESCRIPTION_OPTION,
    {.name = "enable", .kind = OPTION_SWITCH, .help = "Send events again"},
    {.name = "disable", .kind = OPTION_SWITCH, .help = "Send no events"},
    {.name = NULL},
};
static const struct option OPTIONS_ROTATE[] = {
    {.name = "old-secret-s",
     .kind = OPTION_NUMBER,
     .value = "N",
     .max = WEBHOOK_OLD_SECRET_S_MAX,
     .unit = "seconds",
     .help = "How many seconds the old secret also signs (default 86400, a day)"},
    {.name = NULL},
};
static const struct option OPTIONS_LIST[] = {SESSION_PAGE_OPTIONS, {.name = NULL}};

static const struct column COLUMNS[] = {
    {"ID", "id"},
    {"URL", "url"},
    {"EVENTS", "events"},
    {"ENABLED", "enabled"},
    {"FAILING SINCE", "failing_since"},
    {"DESCRIPTION", "description"},
};
static const struct column DELIVERY_COLUMNS[] = {
    {"ID", "id"},
    {"EVENT", "event_type"},
    {"EVENT ID", "event_id"},
    {"STATE", "state"},
    {"ATTEMPTS", "attempts"},
    {"STATUS", "last_status"},
    {"ERROR", "last_error"},
    {"NEXT", "next_attempt_at"},
    {"CREATED", "created_at"},
};

static enum cli_exit webhook_create(struct session *s);
static enum cli_exit webhook_list(struct session *s);
static enum cli_exit webhook_show(struct session *s);
static enum cli_exit webhook_set(struct session *s);
static enum cli_exit webhook_rotate(struct session *s);
static enum cli_exit webhook_delete(struct session *s);
static enum cli_exit webhook_test(struct session *s);
static enum cli_exit webhook_deliveries(struct session *s);
static enum cli_exit webhook_redeliver(struct session *s);

static const struct verb VERBS[] = {
    {.name = "create",
     .about = "Send events to a URL; prints the signing secret, which is shown only once",
     .options = OPTIONS_CREATE,
     .run = webhook_create},
    {.name = "list", .about = "List the webhooks", .options = OPTIONS_LIST, .run = webhook_list},
    {.name = "show",
     .arguments = "ID",
     .ids = &IDS_OF_WEBHOOKS,
     .about = "Show a webhook",
     .run = webhook_show},
    {.name = "set",
     .arguments = "ID",
     .ids = &IDS_OF_WEBHOOKS,
     .about = "Change, enable or disable a webhook",
     .options = OPTIONS_SET,
     .run = webhook_set},
    {.name = "rotate",
     .arguments = "ID",
     .ids = &IDS_OF_WEBHOOKS,
     .about = "Replace the signing secret; prints the new one, which is shown only once",
     .options = OPTIONS_ROTATE,
     .run = webhook_rotate},
    {.name = "delete",
     .arguments = "ID",
     .ids = &IDS_OF_WEBHOOKS,
     .about = "Delete a webhook",
     .run = webhook_delete},
    {.name = "test",
     .arguments = "ID",
     .ids = &IDS_OF_WEBHOOKS,
     .about = "Send a test event",
     .run = webhook_test},
    {.name = "deliveries",
     .arguments = "ID",
     .ids = &IDS_OF_WEBHOOKS,
     .about = "List deliveries and their results",
     .options = OPTIONS_LIST,
     .run = webhook_deliveries},
    {.name = "redeliver",
     .arguments = "ID DELIVERY",
     .ids = &IDS_OF_WEBHOOKS,
     .about = "Send a delivery again",
     .run = webhook_redeliver},
};

const struct command COMMAND_WEBHOOK = {"webhook", "Send events to URLs", VERBS, ARRAY_LEN(VERBS)};

/* --- create and change --- */

/* Only the secret goes to standard output: SECRET=$(pawl webhook create …). */
static void show_secret(struct session *s, json_t *answer)
{
    (void)s;
    if (json_object_get(answer, "secret") != NULL) {
        value_print(stdout, json_object_get(answer, "secret"));
        putchar('\n');
        (void)fflush(stdout);
    }
    fputs("webhook ", stderr);
    value_print(stderr, json_object_get(answer, "id"));
    fputs(json_object_get(answer, "secret") != NULL
              ? ". The secret is shown only this once: save it now.\n"
              : ". Its secret was shown the first time; `pawl webhook rotate` makes a new one.\n",
          stderr);
}

static void add_events(struct session *s)
{
    size_t at = 0;
    const char *event = options_next(&s->opt, "event", &at);
    if (event == NULL)
        return;
    json_open(&s->out, "events", '[');
    for (; event != NULL; event = options_next(&s->opt, "event", &at))
        json_add_text(&s->out, NULL, str_of(event));
    json_close(&s->out, ']');
}

static void add_settings(struct session *s)
{
    session_add_text(s, "url", "to"); /* --url names the server */
    add_events(s);
    session_add_text(s, "description", "description");
}

static enum cli_exit webhook_create(struct session *s)
{
    json_open(&s->out, NULL, '{');
    add_settings(s);
    json_close(&s->out, '}');
    session_path(s, "/api/v1/webhooks", "", "");
    return session_call(s, "POST", show_secret);
}

static enum cli_exit webhook_set(struct session *s)
{
    bool enable = options_has(&s->opt, "enable");
    bool disable = options_has(&s->opt, "disable");
    if (enable && disable) {
        fprintf(stderr, "pawl: Use either --enable or --disable, not both\n");
        return CLI_USAGE;
    }
    json_open(&s->out, NULL, '{');
    add_settings(s);
    if (enable || disable)
        json_add_bool(&s->out, "enabled", enable);
    json_close(&s->out, '}');
    session_path(s, WEBHOOKS, s->args[0], "");
    return session_call(s, "PUT", session_show_object);
}

static enum cli_exit webhook_rotate(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_number(s, "old_secret_s", "old-secret-s");
    json_close(&s->out, '}');
    session_path(s, WEBHOOKS, s->args[0], "/rotate");
    return session_call(s, "POST", show_secret);
}

static void show_deleted(struct session *s, json_t *answer)
{
    (void)answer;
    printf("%s deleted\n", s->args[0]);
}

static enum cli_exit webhook_delete(struct session *s)
{
    session_path(s, WEBHOOKS, s->args[0], "");
    return session_call(s, "DELETE", show_deleted);
}

/* --- read --- */

static enum cli_exit webhook_list(struct session *s)
{
    session_path(s, "/api/v1/webhooks", "", "");
    return session_pages(s, COLUMNS, ARRAY_LEN(COLUMNS));
}

static enum cli_exit webhook_show(struct session *s)
{
    session_path(s, WEBHOOKS, s->args[0], "");
    return session_call(s, "GET", session_show_object);
}

static enum cli_exit webhook_deliveries(struct session *s)
{
    session_path(s, WEBHOOKS, s->args[0], "/deliveries");
    return session_pages(s, DELIVERY_COLUMNS, ARRAY_LEN(DELIVERY_COLUMNS));
}

/* --- send --- */

static void show_pending(struct session *s, json_t *answer)
{
    (void)s;
    value_print(stdout, json_object_get(answer, "id"));
    fputs("  ", stdout);
    value_print(stdout, json_object_get(answer, "state"));
    putchar('\n');
}

static enum cli_exit webhook_test(struct session *s)
{
    session_path(s, WEBHOOKS, s->args[0], "/test");
    return session_call(s, "POST", show_pending);
}

static enum cli_exit webhook_redeliver(struct session *s)
{
    session_path(s, WEBHOOKS, s->args[0], "/deliveries/");
    session_path_on(s, s->args[1], "/redeliver");
    return session_call(s, "POST", show_pending);
}
