/* The part of JSON Schema that pawl knows: one table of keywords, each with what it may say in a
 * schema and how it judges a value. A keyword that is not in the table is refused when the schema
 * is stored, because a schema that is applied by half would let through what its author forbade. */
#include "domain/schema_internal.h"

#include "base/limits.h"

// clang-format off
static const struct keyword KEYWORDS[] = {
    /* name                  about        may say                  judges by */
    {"type",                 KIND_ANY,    keyword_check_type,       keyword_fits_type,       BOUND_NONE},
    {"properties",           KIND_OBJECT, keyword_check_properties, keyword_fits_properties, BOUND_NONE},
    {"required",             KIND_OBJECT, keyword_check_required,   keyword_fits_required,   BOUND_NONE},
    {"additionalProperties", KIND_OBJECT, keyword_check_schema,     keyword_fits_additional, BOUND_NONE},
    {"propertyNames",        KIND_OBJECT, keyword_check_schema,     keyword_fits_names,      BOUND_NONE},
    {"minProperties",        KIND_OBJECT, keyword_check_count,      keyword_fits_size,       AT_LEAST},
    {"maxProperties",        KIND_OBJECT, keyword_check_count,      keyword_fits_size,       AT_MOST},
    {"items",                KIND_ARRAY,  keyword_check_schema,     keyword_fits_items,      BOUND_NONE},
    {"prefixItems",          KIND_ARRAY,  keyword_check_schemas,    keyword_fits_prefix,     BOUND_NONE},
    {"minItems",             KIND_ARRAY,  keyword_check_count,      keyword_fits_size,       AT_LEAST},
    {"maxItems",             KIND_ARRAY,  keyword_check_count,      keyword_fits_size,       AT_MOST},
    {"uniqueItems",          KIND_ARRAY,  keyword_check_flag,       keyword_fits_unique,     BOUND_NONE},
    {"minLength",            KIND_TEXT,   keyword_check_count,      keyword_fits_size,       AT_LEAST},
    {"maxLength",            KIND_TEXT,   keyword_check_count,      keyword_fits_size,       AT_MOST},
    {"minimum",              KIND_NUMBER, keyword_check_number,     keyword_fits_limit,      AT_LEAST},
    {"maximum",              KIND_NUMBER, keyword_check_number,     keyword_fits_limit,      AT_MOST},
    {"exclusiveMinimum",     KIND_NUMBER, keyword_check_number,     keyword_fits_limit,      ABOVE},
    {"exclusiveMaximum",     KIND_NUMBER, keyword_check_number,     keyword_fits_limit,      BELOW},
    {"multipleOf",           KIND_NUMBER, keyword_check_positive,   keyword_fits_multiple,   BOUND_NONE},
    {"enum",                 KIND_ANY,    keyword_check_values,     keyword_fits_enum,       BOUND_NONE},
    {"const",                KIND_ANY,    keyword_check_nothing,    keyword_fits_const,      BOUND_NONE},
    {"allOf",                KIND_ANY,    keyword_check_schemas,    keyword_fits_all,        BOUND_NONE},
    {"anyOf",                KIND_ANY,    keyword_check_schemas,    keyword_fits_any,        BOUND_NONE},
    {"oneOf",                KIND_ANY,    keyword_check_schemas,    keyword_fits_one,        BOUND_NONE},
    {"not",                  KIND_ANY,    keyword_check_schema,     keyword_fits_not,        BOUND_NONE},
    {"title",                KIND_ANY,    keyword_check_text,       NULL,                    BOUND_NONE},
    {"description",          KIND_ANY,    keyword_check_text,       NULL,                    BOUND_NONE},
    {"default",              KIND_ANY,    keyword_check_nothing,    NULL,                    BOUND_NONE},
    {"examples",             KIND_ANY,    keyword_check_array,      NULL,                    BOUND_NONE},
    {"deprecated",           KIND_ANY,    keyword_check_flag,       NULL,                    BOUND_NONE},
    {"format",               KIND_ANY,    keyword_check_text,       NULL,                    BOUND_NONE},
    {"$comment",             KIND_ANY,    keyword_check_text,       NULL,                    BOUND_NONE},
    {"$schema",              KIND_ANY,    keyword_check_text,       NULL,                    BOUND_NONE},
    {"$id",                  KIND_ANY,    keyword_check_text,       NULL,                    BOUND_NONE},
};
// clang-format on

/* Walking an object takes a pointer to what might change; nothing here changes it. */
static json_t *walkable(const json_t *value)
{
    return (json_t *)(uintptr_t)value;
}

void schema_check_schema(const json_t *schema, struct fault_list *faults)
{
    assert(schema != NULL);
    keyword_check_schema(walkable(schema), faults);
}

enum schema_verdict schema_check_value(const json_t *schema, const json_t *value,
                                       struct work_budget *work, struct fault_list *faults)
{
    assert(schema != NULL && value != NULL);
    struct judge j = {.faults = faults, .work = work};
    size_t before = faults->count;
    bool ok = judge_fits(&j, walkable(schema), walkable(value));
    assert(j.quiet == 0);
    if (work->left == 0)
        return SCHEMA_GAVE_UP;
    assert(ok || faults->count > before || faults->count == DEFINITION_FAULTS_MAX ||
           !buf_ok(faults->out));
    return ok ? SCHEMA_FITS : SCHEMA_MISFITS;
}

const struct keyword *schema_keyword(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(KEYWORDS); i++) {
        /* The first letter saves most of the calls; this is the hottest line of judging. */
        if (KEYWORDS[i].name[0] == name[0] && strcmp(KEYWORDS[i].name, name) == 0)
            return &KEYWORDS[i];
    }
    return NULL;
}
