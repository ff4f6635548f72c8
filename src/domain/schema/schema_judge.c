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

size_t judge_text_steps(const struct json *text)
{
    return 1 + json_text_of(text).len / SCHEMA_TEXT_PER_STEP;
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

static bool fits_at(struct judge *j, const struct json *schema, const struct json *value,
                    size_t back_to)
{
    bool ok = judge_fits(j, schema, value);
    if (j->quiet == 0)
        fault_list_leave(j->faults, back_to);
    return ok;
}

bool judge_member(struct judge *j, const struct json *schema, struct str name,
                  const struct json *value)
{
    size_t back_to = j->quiet == 0 ? fault_list_enter(j->faults, name) : 0;
    return fits_at(j, schema, value, back_to);
}

bool judge_element(struct judge *j, const struct json *schema, size_t index,
                   const struct json *value)
{
    size_t back_to = j->quiet == 0 ? fault_list_enter_index(j->faults, index) : 0;
    return fits_at(j, schema, value, back_to);
}

bool judge_quietly(struct judge *j, const struct json *schema, const struct json *value)
{
    j->quiet++;
    bool ok = judge_fits(j, schema, value);
    j->quiet--;
    return ok;
}

static bool is_kind(enum kind kind, const struct json *value)
{
    switch (kind) {
    case KIND_ANY:
        return true;
    case KIND_TEXT:
        return json_is(value, JSON_KIND_TEXT);
    case KIND_NUMBER:
        return json_is_numeric(value);
    case KIND_ARRAY:
        return json_is(value, JSON_KIND_LIST);
    case KIND_OBJECT:
        return json_is(value, JSON_KIND_OBJECT);
    }
    assert(false);
    return false;
}

/* By each keyword that speaks about the value. */
static bool fits_keywords(struct judge *j, const struct json *schema, const struct json *value)
{
    bool ok = true;
    struct meeting m = {.schema = schema, .value = value};
    for (size_t i = 0; i < json_members(schema); i++) {
        m.word = schema_keyword(json_name_at(schema, i));
        m.want = json_value_at(schema, i);
        assert(m.word != NULL);
        bool speaks = m.word->fits != NULL && is_kind(m.word->kind, value);
        ok = judge_spend(j, 1) && (!speaks || m.word->fits(j, &m)) && ok;
        if (!ok && (j->quiet > 0 || j->work->left == 0))
            return false;
    }
    return ok;
}

/* Recursion: SCHEMA_DEPTH_MAX deep. */
bool judge_fits(struct judge *j, const struct json *schema, const struct json *value)
{
    if (!judge_spend(j, 1))
        return false;
    if (json_is_bool(schema))
        return json_is(schema, JSON_KIND_TRUE) || judge_misfit(j, "nothing is allowed here");
    if (j->depth == SCHEMA_DEPTH_MAX)
        return judge_spend(j, SIZE_MAX); /* gives up */
    j->depth++;
    bool ok = fits_keywords(j, schema, value);
    j->depth--;
    return ok;
}

static const char *type_of(const struct json *value)
{
    switch ((enum json_kind)value->kind) {
    case JSON_KIND_NULL:
        return "null";
    case JSON_KIND_TRUE:
    case JSON_KIND_FALSE:
        return "boolean";
    case JSON_KIND_INTEGER:
        return "integer";
    case JSON_KIND_REAL:
        return value->real == floor(value->real) ? "integer" : "number";
    case JSON_KIND_TEXT:
        return "string";
    case JSON_KIND_LIST:
        return "array";
    case JSON_KIND_OBJECT:
        return "object";
    }
    assert(false);
    return "";
}

static bool is_type(const struct json *value, const struct json *type)
{
    return str_is(json_text_of(type), type_of(value)) ||
           (json_is_numeric(value) && str_is(json_text_of(type), "number"));
}

bool keyword_fits_type(struct judge *j, const struct meeting *m)
{
    if (json_is(m->want, JSON_KIND_TEXT))
        return is_type(m->value, m->want) ||
               judge_misfit(j, "must be of type %s, is %s", json_text_of(m->want).ptr,
                            type_of(m->value));
    for (size_t i = 0; i < json_length(m->want); i++) {
        const struct json *type = json_element(m->want, i);
        if (!judge_spend(j, 1) || is_type(m->value, type))
            return j->work->left > 0;
    }
    return judge_misfit(j, "is %s, which is not one of the allowed types", type_of(m->value));
}

/* The message with what was wanted as JSON, or without when that is long. */
bool judge_misfit_listing(struct judge *j, const char *message, const struct json *want)
{
    if (judge_is_silent(j))
        return false;
    struct buf listed;
    buf_init(&listed, SCHEMA_LISTED_MAX);
    json_write_plain(&listed, want);
    if (buf_ok(&listed))
        (void)judge_misfit(j, "%s %.*s", message, STR_ARG(buf_str(&listed)));
    else
        (void)judge_misfit(j, "%s", message);
    buf_release(&listed);
    return false;
}

bool keyword_fits_enum(struct judge *j, const struct meeting *m)
{
    for (size_t i = 0; i < json_length(m->want); i++) {
        const struct json *allowed = json_element(m->want, i);
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
    for (size_t i = 0; i < json_length(m->want); i++)
        ok = judge_fits(j, json_element(m->want, i), m->value) && ok;
    return ok;
}

bool keyword_fits_any(struct judge *j, const struct meeting *m)
{
    for (size_t i = 0; i < json_length(m->want); i++) {
        const struct json *schema = json_element(m->want, i);
        if (judge_quietly(j, schema, m->value))
            return true;
    }
    return judge_misfit(j, "matches none of the schemas in anyOf");
}

bool keyword_fits_one(struct judge *j, const struct meeting *m)
{
    size_t count = 0;
    for (size_t i = 0; i < json_length(m->want); i++)
        count += judge_quietly(j, json_element(m->want, i), m->value);
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
    const struct json *branch = json_member(m->schema, holds ? STR("then") : STR("else"));
    return branch == NULL || judge_fits(j, branch, m->value);
}
