/* pawl audit: who did what, and whether anybody has tampered with that. */
#include "cli/commands.h"

static const char AUDIT[] = "/api/v1/audit";

enum { VERIFY_TIMEOUT_S = 600 }; /* it reads a whole chain */

#define FILTER_FLAGS                                                                           \
    {.name = "actor", .value = "WHO", .help = "only what this person or key did"},             \
    {                                                                                          \
        .name = "action", .value = "ACTION", .help = "only this action, or a pattern as key.*" \
    }

static const struct flag FLAGS_LIST[] = {FILTER_FLAGS, SESSION_PAGE_FLAGS, {.name = NULL}};

static const struct flag FLAGS_EXPORT[] = {
    FILTER_FLAGS,
    {.name = "after",
     .value = "SEQ",
     .help = "only entries behind this one",
     .number = true,
     .min = 0},
    {.name = NULL},
};

static const struct column COLUMNS[] = {
    {"SEQ", "seq"},   {"AT", "at"},         {"ACTOR", "actor"},
    {"FROM", "peer"}, {"ACTION", "action"}, {"TARGET", "target"},
};

static enum cli_exit audit_list(struct session *s);
static enum cli_exit audit_verify(struct session *s);
static enum cli_exit audit_export(struct session *s);

static const struct verb VERBS[] = {
    {.name = "list",
     .about = "who did what, newest first",
     .notes = "The chain of the server itself is that of --tenant '*'.\n",
     .flags = FLAGS_LIST,
     .run = audit_list,
     .store = true},
    {.name = "verify",
     .about = "check the chain; exit code 1 when it is broken",
     .notes = "With --tenant '*' every chain is checked.\n",
     .run = audit_verify,
     .store = true,
     .timeout_s = VERIFY_TIMEOUT_S},
    {.name = "export",
     .about = "every entry as a line of JSON, oldest first",
     .flags = FLAGS_EXPORT,
     .run = audit_export,
     .store = true},
};

const struct command COMMAND_AUDIT = {"audit", VERBS, ARRAY_LEN(VERBS)};

static void add_filter(struct session *s)
{
    session_query(s, "actor", options_text(&s->opt, "actor"));
    session_query(s, "action", options_text(&s->opt, "action"));
}

static enum cli_exit audit_list(struct session *s)
{
    session_path(s, AUDIT, "", "");
    session_query(s, "order", "newest");
    add_filter(s);
    return session_pages(s, COLUMNS, ARRAY_LEN(COLUMNS));
}

static void show_verdict(struct session *s, json_t *answer)
{
    static const char *const MEMBERS[] = {"tenant", "seq", "at"};
    (void)s;
    const json_t *broken = json_object_get(answer, "broken");
    value_print(stdout, json_object_get(answer, "checked"));
    fputs(" entries checked: ", stdout);
    if (json_is_null(broken)) {
        fputs("the chain is whole\n", stdout);
        return;
    }
    fputs("an entry is ", stdout);
    value_print(stdout, json_object_get(broken, "what"));
    for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++) {
        if (json_is_null(json_object_get(broken, MEMBERS[i])))
            continue;
        printf(", %s ", MEMBERS[i]);
        value_print(stdout, json_object_get(broken, MEMBERS[i]));
    }
    putchar('\n');
}

static enum cli_exit audit_verify(struct session *s)
{
    session_path(s, AUDIT, "", "/verify");
    enum cli_exit rc = session_call(s, "GET", show_verdict);
    if (rc == CLI_DONE && !json_is_true(json_object_get(s->answer, "ok")))
        rc = CLI_REFUSED;
    return rc;
}

/* Page by page, each asked for again if need be: what is printed is neither cut short nor twice. */
static enum cli_exit audit_export(struct session *s)
{
    char place[24] = "";
    s->json = false; /* an entry is a line, not a page */
    for (bool more = true; more;) {
        session_path(s, AUDIT, "", "");
        session_query(s, "limit", "200");
        session_query(s, "after", options_text(&s->opt, "after"));
        session_query(s, "cursor", place[0] != '\0' ? place : NULL);
        add_filter(s);
        enum cli_exit rc = session_call(s, "GET", NULL);
        if (rc != CLI_DONE)
            return rc;
        size_t i;
        json_t *entry;
        json_array_foreach (json_object_get(s->answer, "items"), i, entry) {
            if (json_dumpf(entry, stdout, JSON_COMPACT) != 0)
                return CLI_REFUSED;
            putchar('\n');
        }
        const char *next = json_string_value(json_object_get(s->answer, "next_cursor"));
        more = next != NULL && strcmp(next, place) != 0;
        (void)snprintf(place, sizeof(place), "%s", more ? next : "");
    }
    return CLI_DONE;
}
