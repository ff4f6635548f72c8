/* pawl workflow: definitions and their versions. */
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/workflow/workflow_verbs.h"

static const struct option OPTIONS_ID[] = {
    {.name = "id", .value = "ID", .help = "Use this id, not the one in the definition"},
    {.name = NULL},
};
static const struct option OPTIONS_PAGES[] = {SESSION_PAGE_OPTIONS, {.name = NULL}};
static const struct option OPTIONS_SHOW[] = {
    {.name = "version",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .help = "Show this version (default: the newest)"},
    {.name = NULL},
};

static const struct column LIST_COLUMNS[] = {
    {"ID", "id"},
    {"VERSION", "version"},
    {"ARCHIVED", "archived"},
    {"CREATED", "created_at"},
    {"UPDATED", "updated_at"},
    {"DESCRIPTION", "description"},
};
static const struct column VERSION_COLUMNS[] = {
    {"VERSION", "version"},
    {"CREATED", "created_at"},
    {"BY", "created_by"},
    {"DIGEST", "digest"},
};

static enum cli_exit workflow_apply(struct session *s);
static enum cli_exit workflow_validate(struct session *s);
static enum cli_exit workflow_list(struct session *s);
static enum cli_exit workflow_show(struct session *s);
static enum cli_exit workflow_versions(struct session *s);
static enum cli_exit workflow_archive(struct session *s);

static const struct verb VERBS[] = {
    {.name = "apply",
     .arguments = "FILE|-",
     .about = "Store a definition as a new version, unless it equals the current one",
     .notes = "FILE is JSON, or YAML if its name ends with .yaml or .yml.",
     .options = OPTIONS_ID,
     .run = workflow_apply},
    {.name = "validate",
     .arguments = "FILE|-",
     .about = "Check a definition without storing it",
     .options = OPTIONS_ID,
     .run = workflow_validate},
    {.name = "watch",
     .arguments = "DIR",
     .about = "Apply the definitions of a folder now and whenever they change",
     .notes = "It reads the files whose names end with .json, .yaml or .yml, says what it did with "
              "each or what is wrong in it, and goes on until you stop it. `pawl dev --watch DIR` "
              "runs it beside the server.",
     .run = workflow_watch},
    {.name = "list", .about = "List the workflows", .options = OPTIONS_PAGES, .run = workflow_list},
    {.name = "show",
     .arguments = "ID",
     .about = "Show a workflow and its definition",
     .options = OPTIONS_SHOW,
     .run = workflow_show},
    {.name = "graph",
     .arguments = "ID",
     .about = "Draw which step needs which, in the terminal or as SVG",
     .options = OPTIONS_WORKFLOW_GRAPH,
     .run = workflow_graph},
    {.name = "versions",
     .arguments = "ID",
     .about = "List the versions of a workflow",
     .options = OPTIONS_PAGES,
     .run = workflow_versions},
    {.name = "archive",
     .arguments = "ID",
     .about = "Archive a workflow; it starts no new runs",
     .run = workflow_archive},
};

const struct command COMMAND_WORKFLOW = {"workflow", "Define workflows", VERBS, ARRAY_LEN(VERBS)};

/* --- apply and validate --- */

static enum cli_exit workflow_apply(struct session *s)
{
    enum cli_exit rc = workflow_take_file(s, s->args[0], options_text(&s->opt, "id"), "");
    return rc == CLI_DONE ? session_call(s, "PUT", workflow_show_applied) : rc;
}

static void show_verdict(struct session *s, json_t *answer)
{
    (void)s;
    puts(json_is_true(json_object_get(answer, "valid")) ? "valid" : "not valid");
    faults_print(stdout, "  ", json_object_get(answer, "errors"));
    faults_print(stdout, "  warning: ", json_object_get(answer, "warnings"));
}

static enum cli_exit workflow_validate(struct session *s)
{
    enum cli_exit rc = workflow_take_file(s, s->args[0], options_text(&s->opt, "id"), "/validate");
    if (rc == CLI_DONE)
        rc = session_call(s, "POST", show_verdict);
    if (rc == CLI_DONE && !json_is_true(json_object_get(s->answer, "valid")))
        rc = CLI_REFUSED;
    return rc;
}

/* --- reading --- */

static enum cli_exit workflow_list(struct session *s)
{
    session_path(s, "/api/v1/workflows", "", "");
    return session_pages(s, LIST_COLUMNS, ARRAY_LEN(LIST_COLUMNS));
}

static enum cli_exit workflow_versions(struct session *s)
{
    session_path(s, WORKFLOWS_PATH, s->args[0], "/versions");
    return session_pages(s, VERSION_COLUMNS, ARRAY_LEN(VERSION_COLUMNS));
}

/* Prints compact JSON with one member or element per line. Numbers keep their digits. */
static void print_indented(struct str json)
{
    int depth = 0;
    bool in_text = false;
    for (size_t i = 0; i < json.len; i++) {
        char c = json.ptr[i];
        char next = i + 1 < json.len ? json.ptr[i + 1] : '\0';
        if (in_text) {
            putchar(c);
            if (c == '\\')
                putchar(json.ptr[++i]);
            in_text = c != '"';
        } else if ((c == '{' && next == '}') || (c == '[' && next == ']')) {
            printf("%c%c", c, next);
            i++;
        } else if (c == '{' || c == '[') {
            printf("%c\n%*s", c, 2 * ++depth, "");
        } else if (c == '}' || c == ']') {
            printf("\n%*s%c", 2 * --depth, "", c);
        } else if (c == ',') {
            printf(",\n%*s", 2 * depth, "");
        } else {
            printf(c == ':' ? "%c " : "%c", c);
            in_text = c == '"';
        }
    }
    putchar('\n');
}

static void show_workflow(struct session *s, json_t *answer)
{
    (void)s;
    struct buf text;
    json_t *definition = json_incref(json_object_get(answer, "definition"));
    (void)json_object_del(answer, "definition");
    object_print(stdout, answer);
    buf_init(&text, HTTP_REPLY_MAX);
    json_put_plain(&text, definition);
    print_indented(buf_str(&text));
    buf_release(&text);
    json_decref(definition);
}

static enum cli_exit workflow_show(struct session *s)
{
    session_path(s, WORKFLOWS_PATH, s->args[0], "");
    session_query(s, "version", options_text(&s->opt, "version"));
    return session_call(s, "GET", show_workflow);
}

static void show_archived(struct session *s, json_t *answer)
{
    (void)answer;
    printf("%s archived\n", s->args[0]);
}

static enum cli_exit workflow_archive(struct session *s)
{
    session_path(s, WORKFLOWS_PATH, s->args[0], "");
    return session_call(s, "DELETE", show_archived);
}
