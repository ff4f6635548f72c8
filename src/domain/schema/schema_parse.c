/* What a schema may say: each keyword's own value, before any value is judged by it. */
#include "domain/schema/keyword.h"

#include <math.h>

static const char *const TYPE_NAMES[] = {"null",   "boolean", "integer", "number",
                                         "string", "array",   "object"};

/* Recursion: no deeper than the JSON text, which the reader keeps under JSON_DEPTH_MAX. */
void keyword_check_schema(struct reading *r, const struct json *schema)
{
    if (json_is_bool(schema))
        return;
    if (!json_is(schema, JSON_KIND_OBJECT)) {
        fault_list_add(r->faults, "must be a schema: an object, true or false");
        return;
    }
    bool has_own_id = schema != r->root && json_member(schema, STR("$id")) != NULL;
    r->own_ids += has_own_id;
    for (size_t i = 0; i < json_members(schema); i++) {
        struct str name = json_name_at(schema, i);
        const struct json *want = json_value_at(schema, i);
        size_t back_to = fault_list_enter(r->faults, name);
        const struct keyword *word = schema_keyword(name);
        if (word != NULL)
            word->check(r, want);
        else
            fault_list_add(r->faults, "the schema keyword \"%s\" is not supported", name.ptr);
        fault_list_leave(r->faults, back_to);
    }
    r->own_ids -= has_own_id;
}

static bool is_filled_array(struct reading *r, const struct json *want, const char *of_what)
{
    if (json_length(want) > 0) /* 0 for what is no array */
        return true;
    fault_list_add(r->faults, "must be an array with at least one %s", of_what);
    return false;
}

void keyword_check_schemas(struct reading *r, const struct json *want)
{
    if (!is_filled_array(r, want, "schema"))
        return;
    for (size_t i = 0; i < json_length(want); i++) {
        size_t back_to = fault_list_enter_index(r->faults, i);
        keyword_check_schema(r, json_element(want, i));
        fault_list_leave(r->faults, back_to);
    }
}

void keyword_check_named(struct reading *r, const struct json *want)
{
    if (!json_is(want, JSON_KIND_OBJECT)) {
        fault_list_add(r->faults, "must be an object of schemas");
        return;
    }
    for (size_t i = 0; i < json_members(want); i++) {
        size_t back_to = fault_list_enter(r->faults, json_name_at(want, i));
        keyword_check_schema(r, json_value_at(want, i));
        fault_list_leave(r->faults, back_to);
    }
}

static void check_type_name(struct reading *r, const struct json *want)
{
    for (size_t i = 0; i < ARRAY_LEN(TYPE_NAMES); i++) {
        if (json_is(want, JSON_KIND_TEXT) && str_is(json_text_of(want), TYPE_NAMES[i]))
            return;
    }
    fault_list_add(r->faults,
                   "must be one of null, boolean, integer, number, string, array, object");
}

void keyword_check_type(struct reading *r, const struct json *want)
{
    if (json_is(want, JSON_KIND_TEXT)) {
        check_type_name(r, want);
        return;
    }
    if (!is_filled_array(r, want, "type, or the name of one"))
        return;
    for (size_t i = 0; i < json_length(want); i++) {
        size_t back_to = fault_list_enter_index(r->faults, i);
        check_type_name(r, json_element(want, i));
        fault_list_leave(r->faults, back_to);
    }
}

void keyword_check_values(struct reading *r, const struct json *want)
{
    (void)is_filled_array(r, want, "value");
}

void keyword_check_required(struct reading *r, const struct json *want)
{
    if (!json_is(want, JSON_KIND_LIST)) {
        fault_list_add(r->faults, "must be an array of member names");
        return;
    }
    for (size_t i = 0; i < json_length(want); i++) {
        if (json_is(json_element(want, i), JSON_KIND_TEXT))
            continue;
        size_t back_to = fault_list_enter_index(r->faults, i);
        fault_list_add(r->faults, "must be the name of a member");
        fault_list_leave(r->faults, back_to);
    }
}

void keyword_check_dependents(struct reading *r, const struct json *want)
{
    if (!json_is(want, JSON_KIND_OBJECT)) {
        fault_list_add(r->faults, "must be an object of arrays of member names");
        return;
    }
    for (size_t i = 0; i < json_members(want); i++) {
        size_t back_to = fault_list_enter(r->faults, json_name_at(want, i));
        keyword_check_required(r, json_value_at(want, i));
        fault_list_leave(r->faults, back_to);
    }
}

void keyword_check_count(struct reading *r, const struct json *want)
{
    double count = json_is_numeric(want) ? json_double_of(want) : -1;
    if (count < 0 || count != floor(count))
        fault_list_add(r->faults, "must be a whole number, 0 or more");
}

void keyword_check_number(struct reading *r, const struct json *want)
{
    if (!json_is_numeric(want))
        fault_list_add(r->faults, "must be a number");
}

void keyword_check_positive(struct reading *r, const struct json *want)
{
    if (!json_is_numeric(want) || json_double_of(want) <= 0)
        fault_list_add(r->faults, "must be a number above 0");
}

void keyword_check_flag(struct reading *r, const struct json *want)
{
    if (!json_is_bool(want))
        fault_list_add(r->faults, "must be true or false");
}

void keyword_check_text(struct reading *r, const struct json *want)
{
    if (!json_is(want, JSON_KIND_TEXT))
        fault_list_add(r->faults, "must be text");
}

void keyword_check_array(struct reading *r, const struct json *want)
{
    if (!json_is(want, JSON_KIND_LIST))
        fault_list_add(r->faults, "must be an array");
}

void keyword_check_nothing(struct reading *r UNUSED, const struct json *want UNUSED) {}
