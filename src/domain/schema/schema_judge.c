/* Judging a value by a schema, and the keywords that speak about any value. */
#include "domain/schema/keyword.h"

#include "base/limits.h"

#include <math.h>
#include <stdarg.h>

enum {
    /* Reading this much text costs about as much as any other step. */
    SCHEMA_TEXT_PER_STEP = 32,
    /* Allowed values are listed in the message when they are shorter than this. */
    SCHEMA_LISTED_MAX = 200,
};

size_t judge_text_steps(const json_t *text)
{
    return 1 + json_string_length(text) / SCHEMA_TEXT_PER_STEP;
}

/* Nobody would read another fault. */
static bool judge_is_silent(const struct judge *j)
{
    return j->quiet > 0 || j->work->left == 0 || j->faults->count >= DEFINITION_FAULTS_MAX;
}

/* Returns false, so that a judge can `return judge_misfit(…)`. */
bool PRINTF_LIKE(2, 3) judge_misfit(struct judge *j, const char *fmt, ...)
{
    if (judge_is_silent(j))
        return false;
    va_list args;
    va_start(args, fmt);
    fault_list_add_va(j->faults, fmt, args);
    va_end(args);
    return false;
}

static bool fits_at(struct judge *j, json_t *schema, json_t *value, size_t back_to)
{
    bool ok = judge_fits(j, schema, value);
    if (j->quiet == 0)
        fault_list_leave(j->faults, back_to);
    return ok;
}

bool judge_member(struct judge *j, json_t *schema, const char *name, json_t *value)
{
    size_t back_to = j->quiet == 0 ? fault_list_enter(j->faults, str_of(name)) : 0;
    return fits_at(j, schema, value, back_to);
}

bool judge_element(struct judge *j, json_t *schema, size_t index, json_t *value)
{
    size_t back_to = j->quiet == 0 ? fault_list_enter_index(j->faults, index) : 0;
    return fits_at(j, schema, value, back_to);
}

bool judge_quietly(struct judge *j, json_t *schema, json_t *value)
{
    j->quiet++;
    bool ok = judge_fits(j, schema, value);
    j->quiet--;
    return ok;
}

static bool is_kind(enum kind kind, const json_t *value)
{
    switch (kind) {
    case KIND_ANY:
        return true;
    case KIND_TEXT:
        return json_is_string(value);
    case KIND_NUMBER:
        return json_is_number(value);
    case KIND_ARRAY:
        return json_is_array(value);
    case KIND_OBJECT:
        return json_is_object(value);
    }
    assert(false);
    return false;
}

/* By each keyword that speaks about the value. */
static bool fits_keywords(struct judge *j, json_t *schema, json_t *value)
{
    bool ok = true;
    struct meeting m = {.schema = schema, .value = value};
    const char *name;
    json_object_foreach (schema, name, m.want) {
        m.word = schema_keyword(name);
        assert(m.word != NULL);
        bool speaks = m.word->fits != NULL && is_kind(m.word->kind, value);
        ok = judge_spend(j, 1) && (!speaks || m.word->fits(j, &m)) && ok;
        if (!ok && (j->quiet > 0 || j->work->left == 0))
            return false;
    }
    return ok;
}

/* Recursion: SCHEMA_DEPTH_MAX deep. */
bool judge_fits(struct judge *j, json_t *schema, json_t *value)
{
    if (!judge_spend(j, 1))
        return false;
    if (json_is_boolean(schema))
        return json_is_true(schema) || judge_misfit(j, "nothing is allowed here");
    if (j->depth == SCHEMA_DEPTH_MAX)
        return judge_spend(j, SIZE_MAX); /* gives up */
    j->depth++;
    bool ok = fits_keywords(j, schema, value);
    j->depth--;
    return ok;
}

static const char *type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_NULL:
        return "null";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    case JSON_INTEGER:
        return "integer";
    case JSON_REAL:
        return json_real_value(value) == floor(json_real_value(value)) ? "integer" : "number";
    case JSON_STRING:
        return "string";
    case JSON_ARRAY:
        return "array";
    case JSON_OBJECT:
        return "object";
    }
    assert(false);
    return "";
}

static bool is_type(const json_t *value, const json_t *type)
{
    return str_is(json_str(type), type_of(value)) ||
           (json_is_number(value) && str_is(json_str(type), "number"));
}

bool keyword_fits_type(struct judge *j, const struct meeting *m)
{
    if (json_is_string(m->want))
        return is_type(m->value, m->want) ||
               judge_misfit(j, "must be of type %s, is %s", json_string_value(m->want),
                            type_of(m->value));
    size_t i;
    json_t *type;
    json_array_foreach (m->want, i, type) {
        if (!judge_spend(j, 1) || is_type(m->value, type))
            return j->work->left > 0;
    }
    return judge_misfit(j, "is %s, which is not one of the allowed types", type_of(m->value));
}

/* The message with what was wanted as JSON, or without when that is long. */
bool judge_misfit_listing(struct judge *j, const char *message, const json_t *want)
{
    if (judge_is_silent(j))
        return false;
    struct buf listed;
    buf_init(&listed, SCHEMA_LISTED_MAX);
    json_put_plain(&listed, want);
    if (buf_ok(&listed))
        (void)judge_misfit(j, "%s %.*s", message, STR_ARG(buf_str(&listed)));
    else
        (void)judge_misfit(j, "%s", message);
    buf_release(&listed);
    return false;
}

bool keyword_fits_enum(struct judge *j, const struct meeting *m)
{
    size_t i;
    json_t *allowed;
    json_array_foreach (m->want, i, allowed) {
        if (judge_equal(j, allowed, m->value))
            return true;
    }
    return judge_misfit_listing(j, "must be one of the values", m->want);
}

bool keyword_fits_const(struct judge *j, const struct meeting *m)
{
    return judge_equal(j, m->want, m->value) ||
           judge_misfit_listing(j, "must be the value", m->want);
}

bool keyword_fits_all(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    size_t i;
    json_t *schema;
    json_array_foreach (m->want, i, schema)
        ok = judge_fits(j, schema, m->value) && ok;
    return ok;
}

bool keyword_fits_any(struct judge *j, const struct meeting *m)
{
    size_t i;
    json_t *schema;
    json_array_foreach (m->want, i, schema) {
        if (judge_quietly(j, schema, m->value))
            return true;
    }
    return judge_misfit(j, "matches none of the schemas in anyOf");
}

bool keyword_fits_one(struct judge *j, const struct meeting *m)
{
    size_t count = 0;
    size_t i;
    json_t *schema;
    json_array_foreach (m->want, i, schema)
        count += judge_quietly(j, schema, m->value);
    return count == 1 ||
           judge_misfit(j, "must match exactly one schema in oneOf, matches %zu", count);
}

bool keyword_fits_not(struct judge *j, const struct meeting *m)
{
    return !judge_quietly(j, m->want, m->value) ||
           judge_misfit(j, "must not match the schema in not");
}

bool keyword_fits_if(struct judge *j, const struct meeting *m)
{
    bool holds = judge_quietly(j, m->want, m->value);
    json_t *branch = json_object_get(m->schema, holds ? "then" : "else");
    return branch == NULL || judge_fits(j, branch, m->value);
}
