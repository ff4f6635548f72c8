/* pawl context: named servers. */
#include "cli/commands.h"
#include "cli/setup/contexts.h"

#include <limits.h>
#include <stdlib.h>

static const struct option OPTIONS_ADD[] = {
    {.name = "url", .value = "URL", .help = "The server", .required = true},
    {.name = "key-file",
     .value = "FILE",
     .help = "The file with your API key; it is read at each use"},
    {.name = "tenant", .value = "ID", .help = "The tenant to act for"},
    {.name = "actor", .value = "NAME", .help = "Your name, for a server in development mode"},
    {.name = "ca-file", .value = "FILE", .help = "PEM certificates to trust for HTTPS"},
    {.name = NULL},
};

static const struct column COLUMNS[] = {
    {"CURRENT", "current"}, {"NAME", "name"},    {"URL", "url"},
    {"TENANT", "tenant"},   {"KEY", "key_file"},
};

static enum cli_exit context_add(struct session *s);
static enum cli_exit context_list(struct session *s);
static enum cli_exit context_use(struct session *s);
static enum cli_exit context_remove(struct session *s);

static const struct verb VERBS[] = {
    {.name = "add",
     .arguments = "NAME",
     .about = "Add a context, or replace it; the first one becomes the current one",
     .options = OPTIONS_ADD,
     .local = true,
     .run = context_add},
    {.name = "list", .about = "List the contexts", .local = true, .run = context_list},
    {.name = "use",
     .arguments = "NAME",
     .about = "Make a context the current one",
     .notes = "Commands use the current context unless --context, --url or PAWL_URL is set.",
     .local = true,
     .run = context_use},
    {.name = "remove",
     .arguments = "NAME",
     .about = "Remove a context; its key file stays",
     .local = true,
     .run = context_remove},
};

const struct command COMMAND_CONTEXT = {
    "context", "Name servers, and choose the one that commands call", VERBS, ARRAY_LEN(VERBS)};

/* Files are kept with their whole path: commands run in other folders too. */
static void set_option(json_t *context, const struct session *s, const char *option,
                       const char *member)
{
    char path[PATH_MAX];
    const char *value = options_text(&s->opt, option);
    bool is_file = strcmp(options_find(&s->opt, option)->value, "FILE") == 0;
    if (value == NULL)
        return;
    if (is_file && realpath(value, path) != NULL)
        value = path;
    (void)json_object_set_new(context, member, json_string(value));
}

static enum cli_exit check_key_file(const struct session *s)
{
    struct buf key;
    const char *file = options_text(&s->opt, "key-file");
    if (file == NULL)
        return CLI_DONE;
    buf_init(&key, 64 * 1024);
    enum cli_exit rc = contexts_read_key(file, &key);
    buf_release(&key);
    return rc;
}

static enum cli_exit context_add(struct session *s)
{
    json_t *contexts;
    if (!str_is_name(str_of(s->args[0]))) {
        fprintf(stderr, "pawl: A name has letters, digits and _-.: only, not \"%s\"\n", s->args[0]);
        return CLI_USAGE;
    }
    enum cli_exit rc = check_key_file(s);
    if (rc == CLI_DONE)
        rc = contexts_load(&contexts);
    if (rc != CLI_DONE)
        return rc;
    json_t *context = json_object();
    set_option(context, s, "url", "url");
    set_option(context, s, "key-file", "key_file");
    set_option(context, s, "tenant", "tenant");
    set_option(context, s, "actor", "actor");
    set_option(context, s, "ca-file", "ca_file");
    (void)json_object_set_new(json_object_get(contexts, "contexts"), s->args[0], context);
    bool is_first = !json_is_string(json_object_get(contexts, "current"));
    if (is_first)
        (void)json_object_set_new(contexts, "current", json_string(s->args[0]));
    rc = contexts_save(contexts);
    if (rc == CLI_DONE)
        printf("%s added%s\n", s->args[0], is_first ? "; it is the current context" : "");
    json_decref(contexts);
    return rc;
}

static enum cli_exit context_list(struct session *s)
{
    json_t *contexts, *context, *rows = json_array();
    const char *name;
    (void)s;
    enum cli_exit rc = contexts_load(&contexts);
    if (rc == CLI_DONE) {
        const char *current = json_string_value(json_object_get(contexts, "current"));
        json_object_foreach (json_object_get(contexts, "contexts"), name, context) {
            bool is_current = current != NULL && strcmp(current, name) == 0;
            json_t *row = json_copy(context);
            (void)json_object_set_new(row, "name", json_string(name));
            (void)json_object_set_new(row, "current", json_string(is_current ? "*" : ""));
            (void)json_array_append_new(rows, row);
        }
        rows_print(stdout, COLUMNS, ARRAY_LEN(COLUMNS), rows);
        json_decref(contexts);
    }
    json_decref(rows);
    return rc;
}

static enum cli_exit change(struct session *s, void (*apply)(json_t *contexts, const char *name),
                            const char *done)
{
    json_t *contexts;
    const json_t *found;
    enum cli_exit rc = contexts_load(&contexts);
    if (rc != CLI_DONE)
        return rc;
    rc = contexts_find(contexts, s->args[0], &found);
    if (rc == CLI_DONE) {
        apply(contexts, s->args[0]);
        rc = contexts_save(contexts);
    }
    if (rc == CLI_DONE)
        printf("%s %s\n", s->args[0], done);
    json_decref(contexts);
    return rc;
}

static void apply_use(json_t *contexts, const char *name)
{
    (void)json_object_set_new(contexts, "current", json_string(name));
}

static enum cli_exit context_use(struct session *s)
{
    return change(s, apply_use, "is the current context");
}

static void apply_remove(json_t *contexts, const char *name)
{
    const char *current = json_string_value(json_object_get(contexts, "current"));
    if (current != NULL && strcmp(current, name) == 0)
        (void)json_object_set_new(contexts, "current", json_null());
    (void)json_object_del(json_object_get(contexts, "contexts"), name);
}

static enum cli_exit context_remove(struct session *s)
{
    return change(s, apply_remove, "removed");
}
