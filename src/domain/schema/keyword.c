/* The part of JSON Schema that pawl knows: one table of keywords, each with what it may say in a
 * schema and how it judges a value. A keyword that is not in the table is refused when the schema
 * is stored, because a schema that is applied by half would let through what its author forbade. */
#include "domain/schema/keyword.h"

// clang-format off
#define WORD(name) (name), sizeof(name) - 1
static const struct keyword KEYWORDS[] = {
    /* name                        about        may say                           judges by                        bound       schemas        in place */
    {WORD("type"),                 KIND_ANY,    keyword_check_type,               keyword_fits_type,               BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("properties"),           KIND_OBJECT, keyword_check_named,              keyword_fits_properties,         BOUND_NONE, HOLDS_NAMED,   false},
    {WORD("required"),             KIND_OBJECT, keyword_check_required,           keyword_fits_required,           BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("additionalProperties"), KIND_OBJECT, keyword_check_schema,             keyword_fits_additional,         BOUND_NONE, HOLDS_ONE,     false},
    {WORD("patternProperties"),    KIND_OBJECT, keyword_check_pattern_properties, keyword_fits_pattern_properties, BOUND_NONE, HOLDS_NAMED,   false},
    {WORD("propertyNames"),        KIND_OBJECT, keyword_check_schema,             keyword_fits_names,              BOUND_NONE, HOLDS_ONE,     false},
    {WORD("minProperties"),        KIND_OBJECT, keyword_check_count,              keyword_fits_size,               AT_LEAST,   HOLDS_NOTHING, false},
    {WORD("maxProperties"),        KIND_OBJECT, keyword_check_count,              keyword_fits_size,               AT_MOST,    HOLDS_NOTHING, false},
    {WORD("dependentRequired"),    KIND_OBJECT, keyword_check_dependents,         keyword_fits_dependent_required, BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("dependentSchemas"),     KIND_OBJECT, keyword_check_named,              keyword_fits_dependent_schemas,  BOUND_NONE, HOLDS_NAMED,   true},
    {WORD("items"),                KIND_ARRAY,  keyword_check_schema,             keyword_fits_items,              BOUND_NONE, HOLDS_ONE,     false},
    {WORD("prefixItems"),          KIND_ARRAY,  keyword_check_schemas,            keyword_fits_prefix,             BOUND_NONE, HOLDS_LIST,    false},
    {WORD("contains"),             KIND_ARRAY,  keyword_check_schema,             keyword_fits_contains,           BOUND_NONE, HOLDS_ONE,     false},
    {WORD("minContains"),          KIND_ARRAY,  keyword_check_count,              NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("maxContains"),          KIND_ARRAY,  keyword_check_count,              NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("minItems"),             KIND_ARRAY,  keyword_check_count,              keyword_fits_size,               AT_LEAST,   HOLDS_NOTHING, false},
    {WORD("maxItems"),             KIND_ARRAY,  keyword_check_count,              keyword_fits_size,               AT_MOST,    HOLDS_NOTHING, false},
    {WORD("uniqueItems"),          KIND_ARRAY,  keyword_check_flag,               keyword_fits_unique,             BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("minLength"),            KIND_TEXT,   keyword_check_count,              keyword_fits_size,               AT_LEAST,   HOLDS_NOTHING, false},
    {WORD("maxLength"),            KIND_TEXT,   keyword_check_count,              keyword_fits_size,               AT_MOST,    HOLDS_NOTHING, false},
    {WORD("pattern"),              KIND_TEXT,   keyword_check_pattern,            keyword_fits_pattern,            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("minimum"),              KIND_NUMBER, keyword_check_number,             keyword_fits_limit,              AT_LEAST,   HOLDS_NOTHING, false},
    {WORD("maximum"),              KIND_NUMBER, keyword_check_number,             keyword_fits_limit,              AT_MOST,    HOLDS_NOTHING, false},
    {WORD("exclusiveMinimum"),     KIND_NUMBER, keyword_check_number,             keyword_fits_limit,              ABOVE,      HOLDS_NOTHING, false},
    {WORD("exclusiveMaximum"),     KIND_NUMBER, keyword_check_number,             keyword_fits_limit,              BELOW,      HOLDS_NOTHING, false},
    {WORD("multipleOf"),           KIND_NUMBER, keyword_check_positive,           keyword_fits_multiple,           BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("enum"),                 KIND_ANY,    keyword_check_values,             keyword_fits_enum,               BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("const"),                KIND_ANY,    keyword_check_nothing,            keyword_fits_const,              BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("allOf"),                KIND_ANY,    keyword_check_schemas,            keyword_fits_all,                BOUND_NONE, HOLDS_LIST,    true},
    {WORD("anyOf"),                KIND_ANY,    keyword_check_schemas,            keyword_fits_any,                BOUND_NONE, HOLDS_LIST,    true},
    {WORD("oneOf"),                KIND_ANY,    keyword_check_schemas,            keyword_fits_one,                BOUND_NONE, HOLDS_LIST,    true},
    {WORD("not"),                  KIND_ANY,    keyword_check_schema,             keyword_fits_not,                BOUND_NONE, HOLDS_ONE,     true},
    {WORD("if"),                   KIND_ANY,    keyword_check_schema,             keyword_fits_if,                 BOUND_NONE, HOLDS_ONE,     true},
    {WORD("then"),                 KIND_ANY,    keyword_check_schema,             NULL,                            BOUND_NONE, HOLDS_ONE,     true},
    {WORD("else"),                 KIND_ANY,    keyword_check_schema,             NULL,                            BOUND_NONE, HOLDS_ONE,     true},
    {WORD("$ref"),                 KIND_ANY,    keyword_check_ref,                keyword_fits_ref,                BOUND_NONE, HOLDS_NOTHING, true},
    {WORD("$defs"),                KIND_ANY,    keyword_check_named,              NULL,                            BOUND_NONE, HOLDS_NAMED,   false},
    {WORD("definitions"),          KIND_ANY,    keyword_check_named,              NULL,                            BOUND_NONE, HOLDS_NAMED,   false},
    {WORD("title"),                KIND_ANY,    keyword_check_text,               NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("description"),          KIND_ANY,    keyword_check_text,               NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("default"),              KIND_ANY,    keyword_check_nothing,            NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("examples"),             KIND_ANY,    keyword_check_array,              NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("deprecated"),           KIND_ANY,    keyword_check_flag,               NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("readOnly"),             KIND_ANY,    keyword_check_flag,               NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("writeOnly"),            KIND_ANY,    keyword_check_flag,               NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("format"),               KIND_ANY,    keyword_check_text,               NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("contentEncoding"),      KIND_ANY,    keyword_check_text,               NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("contentMediaType"),     KIND_ANY,    keyword_check_text,               NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("contentSchema"),        KIND_ANY,    keyword_check_schema,             NULL,                            BOUND_NONE, HOLDS_ONE,     false},
    {WORD("$comment"),             KIND_ANY,    keyword_check_text,               NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("$schema"),              KIND_ANY,    keyword_check_text,               NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
    {WORD("$id"),                  KIND_ANY,    keyword_check_text,               NULL,                            BOUND_NONE, HOLDS_NOTHING, false},
};
// clang-format on

const struct keyword *schema_keyword(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(KEYWORDS); i++) {
        /* Length and first letter save most of the calls; this is the hottest line of judging. */
        const struct keyword *word = &KEYWORDS[i];
        if (word->len == name.len && word->name[0] == name.ptr[0] &&
            memcmp(word->name, name.ptr, name.len) == 0)
            return word;
    }
    return NULL;
}
