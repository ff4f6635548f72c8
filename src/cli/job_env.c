/* The environment of a command that works on a job. */
#define _GNU_SOURCE /* environ */
#include "cli/job_env.h"

#include "base/limits.h"

#include <unistd.h>

static const struct {
    const char *name;
    const char *member; /* of the job */
} VARIABLES[] = {
    {"PAWL_JOB_ID", "job_id"},      {"PAWL_IDEMPOTENCY_KEY", "job_id"},
    {"PAWL_RUN_ID", "run_id"},      {"PAWL_WORKFLOW_ID", "workflow_id"},
    {"PAWL_STEP", "step"},          {"PAWL_HANDLER", "handler"},
    {"PAWL_ATTEMPT", "attempt"},    {"PAWL_TENANT", "tenant"},
    {"PAWL_ITEM", "item"},          {"PAWL_COMPENSATES", "compensates"},
    {"TRACEPARENT", "traceparent"},
};

/* One of another job, inherited from whoever started us, would be a lie. */
static bool is_replaced(struct str variable)
{
    struct str name, value;
    (void)str_cut(variable, '=', &name, &value);
    bool replaced = str_is(name, "PAWL_URL");
    for (size_t i = 0; i < ARRAY_LEN(VARIABLES); i++)
        replaced |= str_is(name, VARIABLES[i].name);
    return replaced;
}

/* Each ended by a NUL. */
static void put_variables(struct buf *out, const json_t *job, struct str url)
{
    buf_printf(out, "PAWL_URL=%.*s", STR_ARG(url));
    buf_put_char(out, '\0');
    for (size_t i = 0; i < ARRAY_LEN(VARIABLES); i++) {
        const json_t *value = json_object_get(job, VARIABLES[i].member);
        if (value == NULL || json_is_null(value) || json_is_false(value))
            continue;
        buf_printf(out, "%s=", VARIABLES[i].name);
        if (json_is_string(value))
            buf_put(out, str_of(json_string_value(value)));
        else if (json_is_true(value))
            buf_put_char(out, '1');
        else
            json_put_plain(out, value);
        buf_put_char(out, '\0');
    }
}

void job_env_make(struct job_env *e, const json_t *job, struct str url)
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
        if (!is_replaced(str_of(environ[i])))
            e->vars[count++] = environ[i];
    for (size_t at = 0; at < e->text.len; at += strlen(e->text.ptr + at) + 1)
        e->vars[count++] = e->text.ptr + at;
}

void job_env_release(struct job_env *e)
{
    free(e->vars);
    buf_release(&e->text);
}
