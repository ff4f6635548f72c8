/* pawl audit: the log of who did what, and whether anybody tampered with it. */
#include "cli/commands.h"

static const char AUDIT[] = "/api/v1/audit";

enum { VERIFY_TIMEOUT_S = 600 }; /* the server reads the whole log */

#define FILTER_OPTIONS                                                                 \
    {.name = "actor", .value = "ACTOR", .help = "Only actions of this person or key"}, \
    {                                                                                  \
        .name = "action", .value = "ACTION",                                           \
        .help = "Only this action, or actions that match a pattern such as key.*"      \
    }

static const struct option OPTIONS_LIST[] = {FILTER_OPTIONS, SESSION_PAGE_OPTIONS, {.name = NULL}};

static const struct option OPTIONS_EXPORT[] = {
    FILTER_OPTIONS,
    {.name = "after", .kind = OPTION_NUMBER, .value = "SEQ", .help = "Only entries after this one"},
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
     .about = "List who did what, newest first",
     .notes = "--tenant '*' shows the log of the server itself.\n",
     .options = OPTIONS_LIST,
     .run = audit_list,
     .store = true},
    {.name = "verify",
     .about = "Check that nobody changed the log; exit code 1 if somebody did",
     .notes = "--tenant '*' checks the logs of all tenants.\n",
     .run = audit_verify,
     .store = true,
     .timeout_s = VERIFY_TIMEOUT_S},
    {.name = "export",
     .about = "Print every entry as a line of JSON, oldest first",
     .options = OPTIONS_EXPORT,
     .run = audit_export,
     .store = true},
};

const struct command COMMAND_AUDIT = {"audit", "Read and verify the audit log", VERBS,
                                      ARRAY_LEN(VERBS)};

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

/* Page by page with retries, so that every entry is printed once. */
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
