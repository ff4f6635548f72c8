/* pawl webhook: events sent to URLs. */
#include "base/limits.h"
#include "cli/commands.h"

static const char WEBHOOKS[] = "/api/v1/webhooks/";

#define EVENT_FLAG(must)                                                          \
    {                                                                             \
        .name = "event", .value = "TYPE", .many = true, .required = (must),       \
        .help = "a type of events as run.failed, a family as run.*, or * for all" \
    }

static const struct flag FLAGS_CREATE[] = {
    {.name = "to", .value = "URL", .help = "where events are sent", .required = true},
    EVENT_FLAG(true),
    {.name = "description", .value = "TEXT", .help = "for people"},
    {.name = NULL},
};
static const struct flag FLAGS_SET[] = {
    {.name = "to", .value = "URL", .help = "another place"},
    EVENT_FLAG(false),
    {.name = "description", .value = "TEXT", .help = "for people"},
    {.name = "enable", .help = "send again, after it was disabled"},
    {.name = "disable", .help = "send nothing"},
    {.name = NULL},
};
static const struct flag FLAGS_ROTATE[] = {
    {.name = "old-secret-s",
     .value = "N",
     .help = "seconds for which the old secret signs too; default a day",
     .number = true,
     .max = WEBHOOK_OLD_SECRET_S_MAX},
    {.name = NULL},
};
static const struct flag FLAGS_LIST[] = {SESSION_PAGE_FLAGS, {.name = NULL}};

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
     .about = "have events sent to a URL; prints the secret, this once",
     .flags = FLAGS_CREATE,
     .run = webhook_create},
    {.name = "list", .about = "the webhooks", .flags = FLAGS_LIST, .run = webhook_list},
    {.name = "show", .arg = "ID", .about = "one webhook", .run = webhook_show},
    {.name = "set",
     .arg = "ID",
     .about = "change, enable or disable one",
     .flags = FLAGS_SET,
     .run = webhook_set},
    {.name = "rotate",
     .arg = "ID",
     .about = "a new secret; prints it, this once",
     .flags = FLAGS_ROTATE,
     .run = webhook_rotate},
    {.name = "delete", .arg = "ID", .about = "send nothing more", .run = webhook_delete},
    {.name = "test", .arg = "ID", .about = "send it a test event", .run = webhook_test},
    {.name = "deliveries",
     .arg = "ID",
     .about = "what was sent, and how that went",
     .flags = FLAGS_LIST,
     .run = webhook_deliveries},
    {.name = "redeliver",
     .arg = "ID",
     .arg2 = "DELIVERY",
     .about = "send a delivery again",
     .run = webhook_redeliver},
};

const struct command COMMAND_WEBHOOK = {"webhook", VERBS, ARRAY_LEN(VERBS)};

/* --- making and changing --- */

/* The secret alone on standard output: SECRET=$(pawl webhook create …). */
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
              ? ". The secret is shown only this once: keep it now.\n"
              : ". Its secret was shown the first time; `pawl webhook rotate` makes another.\n",
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
    session_add_text(s, "url", "to"); /* --url is the server's */
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
        fprintf(stderr, "pawl: --enable and --disable contradict each other\n");
        return CLI_USAGE;
    }
    json_open(&s->out, NULL, '{');
    add_settings(s);
    if (enable || disable)
        json_add_bool(&s->out, "enabled", enable);
    json_close(&s->out, '}');
    session_path(s, WEBHOOKS, s->arg, "");
    return session_call(s, "PUT", session_show_object);
}

static enum cli_exit webhook_rotate(struct session *s)
{
    json_open(&s->out, NULL, '{');
    session_add_number(s, "old_secret_s", "old-secret-s");
    json_close(&s->out, '}');
    session_path(s, WEBHOOKS, s->arg, "/rotate");
    return session_call(s, "POST", show_secret);
}

static void show_deleted(struct session *s, json_t *answer)
{
    (void)answer;
    printf("%s deleted\n", s->arg);
}

static enum cli_exit webhook_delete(struct session *s)
{
    session_path(s, WEBHOOKS, s->arg, "");
    return session_call(s, "DELETE", show_deleted);
}

/* --- looking --- */

static enum cli_exit webhook_list(struct session *s)
{
    session_path(s, "/api/v1/webhooks", "", "");
    return session_pages(s, COLUMNS, ARRAY_LEN(COLUMNS));
}

static enum cli_exit webhook_show(struct session *s)
{
    session_path(s, WEBHOOKS, s->arg, "");
    return session_call(s, "GET", session_show_object);
}

static enum cli_exit webhook_deliveries(struct session *s)
{
    session_path(s, WEBHOOKS, s->arg, "/deliveries");
    return session_pages(s, DELIVERY_COLUMNS, ARRAY_LEN(DELIVERY_COLUMNS));
}

/* --- sending --- */

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
    session_path(s, WEBHOOKS, s->arg, "/test");
    return session_call(s, "POST", show_pending);
}

static enum cli_exit webhook_redeliver(struct session *s)
{
    session_path(s, WEBHOOKS, s->arg, "/deliveries/");
    session_path_on(s, s->arg2, "/redeliver");
    return session_call(s, "POST", show_pending);
}
