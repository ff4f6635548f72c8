/* What a schema may say: each keyword's own value, before any value is judged by it. */
#include "domain/schema/keyword.h"

#include <math.h>

static const char *const TYPE_NAMES[] = {"null",   "boolean", "integer", "number",
                                         "string", "array",   "object"};

/* Recursion: no deeper than the JSON text, which json_parse keeps under JSON_DEPTH_MAX. */
void keyword_check_schema(struct reading *r, json_t *schema)
{
    if (json_is_boolean(schema))
        return;
    if (!json_is_object(schema)) {
        fault_list_add(r->faults, "must be a schema: an object, true or false");
        return;
    }
    bool has_own_id = schema != r->root && json_object_get(schema, "$id") != NULL;
    r->own_ids += has_own_id;
    const char *name;
    json_t *want;
    json_object_foreach (schema, name, want) {
        size_t back_to = fault_list_enter(r->faults, str_of(name));
        const struct keyword *word = schema_keyword(name);
        if (word != NULL)
            word->check(r, want);
        else
            fault_list_add(r->faults, "the schema keyword \"%s\" is not supported", name);
        fault_list_leave(r->faults, back_to);
    }
    r->own_ids -= has_own_id;
}

static bool is_filled_array(struct reading *r, json_t *want, const char *of_what)
{
    if (json_array_size(want) > 0) /* 0 for what is no array */
        return true;
    fault_list_add(r->faults, "must be an array with at least one %s", of_what);
    return false;
}

void keyword_check_schemas(struct reading *r, json_t *want)
{
    if (!is_filled_array(r, want, "schema"))
        return;
    size_t i;
    json_t *schema;
    json_array_foreach (want, i, schema) {
        size_t back_to = fault_list_enter_index(r->faults, i);
        keyword_check_schema(r, schema);
        fault_list_leave(r->faults, back_to);
    }
}

void keyword_check_named(struct reading *r, json_t *want)
{
    if (!json_is_object(want)) {
        fault_list_add(r->faults, "must be an object of schemas");
        return;
    }
    const char *name;
    json_t *schema;
    json_object_foreach (want, name, schema) {
        size_t back_to = fault_list_enter(r->faults, str_of(name));
        keyword_check_schema(r, schema);
        fault_list_leave(r->faults, back_to);
    }
}

static void check_type_name(struct reading *r, json_t *want)
{
    for (size_t i = 0; i < ARRAY_LEN(TYPE_NAMES); i++) {
        if (json_is_string(want) && str_is(json_str(want), TYPE_NAMES[i]))
            return;
    }
    fault_list_add(r->faults,
                   "must be one of null, boolean, integer, number, string, array, object");
}

void keyword_check_type(struct reading *r, json_t *want)
{
    if (json_is_string(want)) {
        check_type_name(r, want);
        return;
    }
    if (!is_filled_array(r, want, "type, or the name of one"))
        return;
    size_t i;
    json_t *name;
    json_array_foreach (want, i, name) {
        size_t back_to = fault_list_enter_index(r->faults, i);
        check_type_name(r, name);
        fault_list_leave(r->faults, back_to);
    }
}

void keyword_check_values(struct reading *r, json_t *want)
{
    (void)is_filled_array(r, want, "value");
}

void keyword_check_required(struct reading *r, json_t *want)
{
    if (!json_is_array(want)) {
        fault_list_add(r->faults, "must be an array of member names");
        return;
    }
    size_t i;
    json_t *name;
    json_array_foreach (want, i, name) {
        if (json_is_string(name))
            continue;
        size_t back_to = fault_list_enter_index(r->faults, i);
        fault_list_add(r->faults, "must be the name of a member");
        fault_list_leave(r->faults, back_to);
    }
}

void keyword_check_dependents(struct reading *r, json_t *want)
{
    if (!json_is_object(want)) {
        fault_list_add(r->faults, "must be an object of arrays of member names");
        return;
    }
    const char *name;
    json_t *names;
    json_object_foreach (want, name, names) {
        size_t back_to = fault_list_enter(r->faults, str_of(name));
        keyword_check_required(r, names);
        fault_list_leave(r->faults, back_to);
    }
}

void keyword_check_count(struct reading *r, json_t *want)
{
    double count = json_is_number(want) ? json_number_value(want) : -1;
    if (count < 0 || count != floor(count))
        fault_list_add(r->faults, "must be a whole number, 0 or more");
}

void keyword_check_number(struct reading *r, json_t *want)
{
    if (!json_is_number(want))
        fault_list_add(r->faults, "must be a number");
}

void keyword_check_positive(struct reading *r, json_t *want)
{
    if (!json_is_number(want) || json_number_value(want) <= 0)
        fault_list_add(r->faults, "must be a number above 0");
}

void keyword_check_flag(struct reading *r, json_t *want)
{
    if (!json_is_boolean(want))
        fault_list_add(r->faults, "must be true or false");
}

void keyword_check_text(struct reading *r, json_t *want)
{
    if (!json_is_string(want))
        fault_list_add(r->faults, "must be text");
}

void keyword_check_array(struct reading *r, json_t *want)
{
    if (!json_is_array(want))
        fault_list_add(r->faults, "must be an array");
}

void keyword_check_nothing(struct reading *r UNUSED, json_t *want UNUSED) {}
