/* The environment of a command that works on a job. */
#define _GNU_SOURCE /* environ */
#include "cli/worker/job_env.h"

#include "base/limits.h"

#include <unistd.h>

/* A variable that is always set is empty when the job has no such member, so that scripts may use
 * `set -u`. */
static const struct {
    const char *name;
    const char *member; /* of the job */
    bool always;
} VARIABLES[] = {
    {"PAWL_JOB_ID", "job_id", true},
    {"PAWL_IDEMPOTENCY_KEY", "job_id", true},
    {"PAWL_KIND", "kind", true},
    {"PAWL_RUN_ID", "run_id", true},
    {"PAWL_WORKFLOW_ID", "workflow_id", true},
    {"PAWL_STEP", "step", true},
    {"PAWL_HANDLER", "handler", true},
    {"PAWL_ATTEMPT", "attempt", true},
    {"PAWL_TENANT", "tenant", true},
    {"PAWL_ITEM", "item", false},
    {"PAWL_COMPENSATES", "compensates", false},
    {"TRACEPARENT", "traceparent", false},
    {"TRACESTATE", "tracestate", false},
};

/* Leaves out the variables of another job, which we may have inherited, and our keys: a command
 * must not be able to act as the worker. */
static bool is_left_out(struct str variable, bool pass_api_key)
{
    struct str name, value;
    (void)str_cut(variable, '=', &name, &value);
    if (str_is(name, "PAWL_ROOT_KEY") || (str_is(name, "PAWL_API_KEY") && !pass_api_key))
        return true;
    bool replaced = str_is(name, "PAWL_URL");
    for (size_t i = 0; i < ARRAY_LEN(VARIABLES); i++)
        replaced |= str_is(name, VARIABLES[i].name);
    return replaced;
}

/* Each ends with a NUL. */
static void put_variables(struct buf *out, const json_t *job, struct str url)
{
    buf_printf(out, "PAWL_URL=%.*s", STR_ARG(url));
    buf_put_char(out, '\0');
    for (size_t i = 0; i < ARRAY_LEN(VARIABLES); i++) {
        const json_t *value = json_object_get(job, VARIABLES[i].member);
        bool none = value == NULL || json_is_null(value) || json_is_false(value);
        if (none && !VARIABLES[i].always)
            continue;
        buf_printf(out, "%s=", VARIABLES[i].name);
        if (json_is_string(value))
            buf_put(out, str_of(json_string_value(value)));
        else if (json_is_true(value))
            buf_put_char(out, '1');
        else if (!none)
            json_put_plain(out, value);
        buf_put_char(out, '\0');
    }
}

void job_env_make(struct job_env *e, const json_t *job, struct str url, bool pass_api_key)
{
    size_t inherited = 0, count = 0;
    buf_init(&e->text, 64 * KIB);
    put_variables(&e->text, job, url);
    while (environ[inherited] != NULL)
        inherited++;
    e->vars = NULL;
    if (buf_ok(&e->text))
        e->vars = calloc(inherited + 1 + ARRAY_LEN(VARIABLES) + 1, sizeof(*e->vars));
    if (e->vars == NULL)
        return;
    for (size_t i = 0; i < inherited; i++)
        if (!is_left_out(str_of(environ[i]), pass_api_key))
            e->vars[count++] = environ[i];
    for (size_t at = 0; at < e->text.len; at += strlen(e->text.ptr + at) + 1)
        e->vars[count++] = e->text.ptr + at;
}

void job_env_release(struct job_env *e)
{
    free(e->vars);
    buf_release(&e->text);
}
