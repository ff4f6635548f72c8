/* pawl key: API keys, which are shown once and kept as hashes. */
#include "cli/commands.h"

static const struct flag FLAGS_CREATE[] = {
    {.name = "role",
     .value = "admin|operator|approver|worker|viewer",
     .help = "what it may do; an admin of --tenant '*' rules the server",
     .required = true},
    {.name = "label", .value = "TEXT", .help = "whose it is, for people"},
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
     .about = "make a key of --tenant and print it, this once",
     .flags = FLAGS_CREATE,
     .run = key_create,
     .store = true,
     .tenant_in_body = true},
    {.name = "list", .about = "the keys, without their secrets", .run = key_list, .store = true},
    {.name = "revoke", .arg = "ID", .about = "end a key now", .run = key_revoke, .store = true},
};

const struct command COMMAND_KEY = {"key", VERBS, ARRAY_LEN(VERBS)};

/* The key alone on standard output: KEY=$(pawl key create …). */
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
    fputs(". It is shown only this once: keep it now.\n", stderr);
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
    printf("%s revoked\n", s->arg);
}

static enum cli_exit key_revoke(struct session *s)
{
    session_path(s, "/api/v1/keys/", s->arg, "");
    return session_call(s, "DELETE", show_revoked);
}
