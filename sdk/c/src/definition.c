#include "definition.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "util.h"

struct pawl_workflow {
    json_t *head; /* id and options */
    json_t *steps;
    char *queue; /* of tasks that name no other, or NULL */
    char mistake[256];
};

static const char *const lua_words[] = {"and",   "break", "do",       "else", "elseif", "end",
                                        "false", "for",   "function", "goto", "if",     "in",
                                        "local", "nil",   "not",      "or",   "repeat", "return",
                                        "then",  "true",  "until",    "while"};

struct pawl_workflow *workflow_new(const char *id, json_t *options, const char *problem)
{
    struct pawl_workflow *workflow = calloc(1, sizeof *workflow);
    if (!workflow) {
        json_decref(options);
        return NULL;
    }
    workflow->steps = json_array();
    workflow->head = options ? options : json_object();
    if (!options)
        copy_text(workflow->mistake, sizeof workflow->mistake, problem);
    const char *queue = json_string_value(json_object_get(workflow->head, "queue"));
    workflow->queue = queue ? format("%s", queue) : NULL;
    json_object_del(workflow->head, "queue");
    set_text(workflow->head, "id", id);
    return workflow;
}

struct pawl_workflow *pawl_workflow_new(const char *id, const char *options, ...)
{
    char problem[256] = "";
    va_list args;
    va_start(args, options);
    json_t *packed = pack_options(options, args, problem, sizeof problem);
    va_end(args);
    return workflow_new(id, packed, problem);
}

void pawl_workflow_free(struct pawl_workflow *workflow)
{
    if (!workflow)
        return;
    json_decref(workflow->head);
    json_decref(workflow->steps);
    free(workflow->queue);
    free(workflow);
}

/* A text that is one reference as a whole, such as "${input.ok}", is an expression without its
 * braces. */
static void make_expression(json_t *options, const char *name)
{
    const char *text = json_string_value(json_object_get(options, name));
    size_t size = text ? strlen(text) : 0;
    if (size < 4 || strncmp(text, "${", 2) != 0 || strchr(text, '}') != text + size - 1)
        return;
    char *expression = format("%.*s", (int)(size - 3), text + 2);
    json_object_set_new(options, name, expression ? json_string(expression) : NULL);
    free(expression);
}

/* Short forms become what the server takes: retry is a number of attempts, compensate a handler. */
static void make_long_forms(json_t *options)
{
    json_t *retry = json_object_get(options, "retry"),
           *undo = json_object_get(options, "compensate");
    if (json_is_integer(retry))
        json_object_set_new(options, "retry", json_pack("{s:O}", "max_attempts", retry));
    if (json_is_string(undo))
        json_object_set_new(options, "compensate", json_pack("{s:O}", "handler", undo));
    make_expression(options, "when");
    make_expression(options, "for_each");
}

static bool has_step(const struct pawl_workflow *workflow, const char *name)
{
    size_t i;
    json_t *step;
    json_array_foreach (workflow->steps, i, step)
        if (strcmp(member_text(step, "name"), name) == 0)
            return true;
    return false;
}

void workflow_step(struct pawl_workflow *workflow, const char *type, const char *name,
                   json_t *options, const char *problem)
{
    char mistake[sizeof workflow->mistake];
    copy_text(mistake, sizeof mistake, problem);
    if (options && has_step(workflow, name)) {
        snprintf(mistake, sizeof mistake, "Workflow %s already has a step \"%s\"",
                 member_text(workflow->head, "id"), name);
        json_decref(options);
        options = NULL;
    }
    if (!options) {
        if (!*workflow->mistake)
            copy_text(workflow->mistake, sizeof workflow->mistake, mistake);
        return;
    }
    json_t *step = json_pack("{s:s, s:s}", "name", name, "type", type);
    make_long_forms(options);
    if (strcmp(type, "task") == 0 && !json_object_get(options, "queue"))
        set_text(options, "queue", workflow->queue);
    const char *member;
    json_t *value;
    json_object_foreach (options, member, value)
        if (!json_is_null(value))
            json_object_set(step, member, value);
    json_decref(options);
    json_array_append_new(workflow->steps, step);
}

void pawl_workflow_step(struct pawl_workflow *workflow, const char *type, const char *name,
                        const char *options, ...)
{
    char problem[256] = "";
    va_list args;
    va_start(args, options);
    json_t *packed = pack_options(options, args, problem, sizeof problem);
    va_end(args);
    workflow_step(workflow, type, name, packed, problem);
}

void pawl_workflow_task(struct pawl_workflow *workflow, const char *name, const char *handler,
                        const char *options, ...)
{
    char problem[256] = "";
    va_list args;
    va_start(args, options);
    json_t *packed = pack_options(options, args, problem, sizeof problem);
    va_end(args);
    set_text(packed, "handler", handler);
    workflow_step(workflow, "task", name, packed, problem);
}

void pawl_workflow_approval(struct pawl_workflow *workflow, const char *name, const char *prompt,
                            const char *options, ...)
{
    char problem[256] = "";
    va_list args;
    va_start(args, options);
    json_t *packed = pack_options(options, args, problem, sizeof problem);
    va_end(args);
    set_text(packed, "prompt", prompt);
    workflow_step(workflow, "approval", name, packed, problem);
}

/* Moves a member of the options into the request. */
static void move(json_t *options, json_t *request, const char *name)
{
    json_t *value = json_object_get(options, name);
    if (value && !json_is_null(value))
        json_object_set(request, name, value);
    json_object_del(options, name);
}

void pawl_workflow_http(struct pawl_workflow *workflow, const char *name, const char *method,
                        const char *url, const char *options, ...)
{
    char problem[256] = "";
    va_list args;
    va_start(args, options);
    json_t *packed = pack_options(options, args, problem, sizeof problem);
    va_end(args);
    json_t *request = json_pack("{s:s, s:s}", "method", method, "url", url);
    move(packed, request, "headers");
    move(packed, request, "body");
    if (packed)
        json_object_set(packed, "request", request);
    json_decref(request);
    workflow_step(workflow, "http", name, packed, problem);
}

enum pawl_err pawl_workflow_json(const struct pawl_workflow *workflow, json_t **ret_definition,
                                 struct pawl_error *error)
{
    if (!workflow)
        return error_no_memory(error);
    if (*workflow->mistake)
        return error_set(error, PAWL_ERR_BAD_ARGUMENT, "%s", workflow->mistake);
    json_t *definition = json_deep_copy(workflow->head);
    if (json_object_set_new(definition, "steps", json_deep_copy(workflow->steps)) != 0) {
        json_decref(definition);
        return error_no_memory(error);
    }
    *ret_definition = definition;
    return PAWL_OK;
}

static bool is_lua_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    if (!*name || (*name >= '0' && *name <= '9') || strspn(name, letters) != strlen(name))
        return false;
    for (size_t i = 0; i < sizeof lua_words / sizeof *lua_words; i++)
        if (strcmp(lua_words[i], name) == 0)
            return false;
    return true;
}

/* ["name"], with what Lua needs escaped. */
static void add_quoted(struct buffer *path, const char *name)
{
    buffer_text(path, "[\"");
    for (; *name; name++) {
        if (*name == '\n' || *name == '\r') {
            buffer_text(path, *name == '\n' ? "\\n" : "\\r");
            continue;
        }
        if (*name == '"' || *name == '\\')
            buffer_text(path, "\\");
        buffer_add(path, name, 1);
    }
    buffer_text(path, "\"]");
}

json_t *pawl_ref(const char *const names[])
{
    struct buffer path = {0};
    buffer_text(&path, "${");
    for (size_t i = 0; names[i]; i++) {
        if (!is_lua_name(names[i])) {
            add_quoted(&path, names[i]);
            continue;
        }
        buffer_text(&path, i ? "." : "");
        buffer_text(&path, names[i]);
    }
    buffer_text(&path, "}");
    json_t *reference = path.failed ? NULL : json_string(path.data);
    buffer_free(&path);
    return reference;
}
