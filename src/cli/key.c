/* pawl key: API keys. The server shows a key once and stores its hash. */
#include "cli/commands.h"
#include "cli/names.h"

static const struct option OPTIONS_CREATE[] = {
    {.name = "role",
     .kind = OPTION_CHOICE,
     .value = "ROLE",
     .choices = "admin|operator|approver|worker|viewer",
     .help = "What the key may do; role admin with --tenant '*' may do everything",
     .required = true},
    {.name = "label", .value = "TEXT", .help = "A note for people, such as the key's owner"},
    {.name = NULL},
};

static const struct column LIST_COLUMNS[] = {
    {"ID", "id"},
    {"PREFIX", "prefix"},
    {"TENANT", "tenant"},
    {"ROLE", "role"},
    {"LABEL", "label"},
    {"CREATED", "created_at"},
    {"LAST USED", "last_used_at"},
    {"REVOKED", "revoked_at"},
};

static enum cli_exit key_create(struct session *s);
static enum cli_exit key_list(struct session *s);
static enum cli_exit key_revoke(struct session *s);

static const struct verb VERBS[] = {
    {.name = "create",
     .about = "Create an API key for --tenant and print it; it is shown only once",
     .options = OPTIONS_CREATE,
     .run = key_create,
     .store = true,
     .tenant_in_body = true},
    {.name = "list",
     .about = "List the keys, without their secrets",
     .run = key_list,
     .store = true},
    {.name = "revoke",
     .arguments = "ID",
     .ids = &IDS_OF_KEYS,
     .about = "Revoke a key; it stops working at once",
     .run = key_revoke,
     .store = true},
};

const struct command COMMAND_KEY = {"key", "Create, list and revoke API keys", VERBS,
                                    ARRAY_LEN(VERBS)};

/* Only the key goes to standard output: KEY=$(pawl key create …). */
static void show_created(struct session *s, json_t *answer)
{
    (void)s;
    value_print(stdout, json_object_get(answer, "key"));
    putchar('\n');
    (void)fflush(stdout);
    fputs("key ", stderr);
    value_print(stderr, json_object_get(answer, "id"));
    fputs(", role ", stderr);
    value_print(stderr, json_object_get(answer, "role"));
    fputs(", tenant ", stderr);
    value_print(stderr, json_object_get(answer, "tenant"));
    fputs(". It is shown only this once: save it now.\n", stderr);
}

static enum cli_exit key_create(struct session *s)
{
    json_open(&s->out, NULL, '{');
    if (s->tenant != NULL)
        json_add_text(&s->out, "tenant", str_of(s->tenant));
    session_add_text(s, "role", "role");
    session_add_text(s, "label", "label");
    json_close(&s->out, '}');
    session_path(s, "/api/v1/keys", "", "");
    return session_call(s, "POST", show_created);
}

static enum cli_exit key_list(struct session *s)
{
    session_path(s, "/api/v1/keys", "", "");
    return session_list(s, LIST_COLUMNS, ARRAY_LEN(LIST_COLUMNS), NULL, true);
}

static void show_revoked(struct session *s, json_t *answer)
{
    (void)answer;
    printf("%s revoked\n", s->args[0]);
}

static enum cli_exit key_revoke(struct session *s)
{
    session_path(s, "/api/v1/keys/", s->args[0], "");
    return session_call(s, "DELETE", show_revoked);
}
