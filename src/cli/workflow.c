/* pawl workflow: definitions and their versions. */
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/input.h"

static const char WORKFLOWS[] = "/api/v1/workflows/";

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
     .options = OPTIONS_ID,
     .run = workflow_apply},
    {.name = "validate",
     .arguments = "FILE|-",
     .about = "Check a definition without storing it",
     .options = OPTIONS_ID,
     .run = workflow_validate},
    {.name = "list", .about = "List the workflows", .options = OPTIONS_PAGES, .run = workflow_list},
    {.name = "show",
     .arguments = "ID",
     .about = "Show a workflow and its definition",
     .options = OPTIONS_SHOW,
     .run = workflow_show},
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

/* The file becomes the body unchanged, so that the server reports errors in what was written. To
 * validate a definition without an id, the path has `unnamed` in its place. */
static enum cli_exit take_definition(struct session *s, const char *suffix)
{
    json_t *definition = NULL;
    enum cli_exit rc = input_file(s->args[0], &s->body);
    if (rc != CLI_DONE)
        return rc;
    rc = input_parse(s->args[0], buf_str(&s->body), &definition);
    if (rc != CLI_DONE)
        return rc;
    const char *id = options_text(&s->opt, "id");
    if (id == NULL)
        id = json_string_value(json_object_get(definition, "id"));
    session_path(s, WORKFLOWS, id != NULL ? id : "unnamed", suffix);
    if (id == NULL && suffix[0] == '\0') {
        fprintf(stderr, "pawl: %s has no id. Add one, or use --id\n", s->args[0]);
        rc = CLI_USAGE;
    }
    json_decref(definition);
    return rc;
}

static void show_applied(struct session *s, json_t *answer)
{
    (void)s;
    value_print(stdout, json_object_get(answer, "id"));
    fputs(" version ", stdout);
    value_print(stdout, json_object_get(answer, "version"));
    puts(json_is_true(json_object_get(answer, "created")) ? " (new)" : " (unchanged)");
    faults_print(stderr, "warning: ", json_object_get(answer, "warnings"));
}

static enum cli_exit workflow_apply(struct session *s)
{
    enum cli_exit rc = take_definition(s, "");
    return rc == CLI_DONE ? session_call(s, "PUT", show_applied) : rc;
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
    enum cli_exit rc = take_definition(s, "/validate");
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
    session_path(s, WORKFLOWS, s->args[0], "/versions");
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
    session_path(s, WORKFLOWS, s->args[0], "");
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
    session_path(s, WORKFLOWS, s->args[0], "");
    return session_call(s, "DELETE", show_archived);
}
