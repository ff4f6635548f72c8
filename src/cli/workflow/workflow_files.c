/* Definitions in files. */
#include "base/limits.h"
#include "cli/input.h"
#include "cli/workflow/workflow_verbs.h"
#include "cli/yaml.h"

/* By its name; a file without one of these ends is JSON if it begins as an object does. */
static bool is_yaml(struct str name, struct str text)
{
    size_t at = 0;
    if (str_ends_with(name, STR(".yaml")) || str_ends_with(name, STR(".yml")))
        return true;
    if (str_ends_with(name, STR(".json")))
        return false;
    while (at < text.len && strchr(" \t\r\n", text.ptr[at]) != NULL)
        at++;
    return at < text.len && text.ptr[at] != '{';
}

/* JSON becomes the body unchanged, so that the server reports faults in what was written. */
static enum cli_exit read_definition(struct session *s, const char *file)
{
    struct buf text;
    buf_init(&text, JSON_TEXT_MAX);
    enum cli_exit rc = input_file(file, &text);
    buf_clear(&s->body);
    if (rc == CLI_DONE && is_yaml(str_of(file), buf_str(&text)))
        rc = yaml_to_json(file, buf_str(&text), &s->body);
    else if (rc == CLI_DONE)
        buf_put(&s->body, buf_str(&text));
    buf_release(&text);
    return rc;
}

enum cli_exit workflow_take_file(struct session *s, const char *file, const char *id,
                                 const char *suffix)
{
    json_t *definition = NULL;
    enum cli_exit rc = read_definition(s, file);
    if (rc == CLI_DONE)
        rc = input_parse(file, buf_str(&s->body), &definition);
    if (rc != CLI_DONE)
        return rc;
    if (id == NULL)
        id = json_string_value(json_object_get(definition, "id"));
    session_path(s, WORKFLOWS_PATH, id != NULL ? id : "unnamed", suffix);
    if (id == NULL && suffix[0] == '\0') {
        fprintf(stderr, "pawl: %s has no id. Add one, or use --id\n", file);
        rc = CLI_USAGE;
    }
    json_decref(definition);
    return rc;
}

void workflow_show_applied(struct session *s, json_t *answer)
{
    (void)s;
    value_print(stdout, json_object_get(answer, "id"));
    fputs(" version ", stdout);
    value_print(stdout, json_object_get(answer, "version"));
    puts(json_is_true(json_object_get(answer, "created")) ? " (new)" : " (unchanged)");
    faults_print(stderr, "warning: ", json_object_get(answer, "warnings"));
}
