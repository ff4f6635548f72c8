/* A schema on the first line and a value behind it: the verdict obeys the laws of not, allOf,
 * anyOf, oneOf, enum and const, and does not depend on the order of members. */
#include "domain/schema/schema.h"
#include "fuzz.h"

enum verdict { FITS, MISFITS, TOO_LARGE };

static enum verdict concluded(struct fault_list *faults, struct buf *out)
{
    buf_put_char(out, ']');
    assert(buf_ok(out) && faults->path.len == 0);
    size_t shown = fuzz_check_faults(buf_str(out));
    assert(shown <= faults->count && (shown == 0) == (faults->count == 0));
    enum verdict verdict = faults->count == 0 ? FITS : MISFITS;
    fault_list_release(faults);
    buf_release(out);
    return verdict;
}

/* Of the schema itself when value is NULL. */
static enum verdict judge(const struct json *schema, const struct json *value)
{
    struct buf out;
    struct fault_list faults;
    buf_init(&out, PROBLEM_FAULTS_MAX);
    buf_put_char(&out, '[');
    fault_list_init(&faults, &out);
    struct work_budget work = {SCHEMA_WORK_MAX};
    enum schema_verdict checked = SCHEMA_GAVE_UP;
    if (value == NULL)
        schema_check_schema(schema, &faults);
    else
        checked = schema_check_value(schema, value, &work, &faults);
    bool gave_up = value != NULL && checked == SCHEMA_GAVE_UP;
    enum verdict by_faults = concluded(&faults, &out);
    assert(value == NULL || gave_up || (checked == SCHEMA_FITS) == (by_faults == FITS));
    return gave_up ? TOO_LARGE : by_faults;
}

/* Of trees. */
static enum verdict judge_trees(json_t *schema, json_t *value)
{
    struct json *s = fuzz_value_of(json_incref(schema));
    struct json *v = value != NULL ? fuzz_value_of(json_incref(value)) : NULL;
    enum verdict verdict = judge(s, v);
    json_free(s);
    json_free(v);
    return verdict;
}

/* Takes the schema. */
static void check_verdict(json_t *schema, json_t *value, enum verdict wanted)
{
    assert(schema != NULL && judge_trees(schema, NULL) == FITS);
    enum verdict verdict = judge_trees(schema, value);
    assert(verdict == wanted || verdict == TOO_LARGE);
    json_decref(schema);
}

/* Such a schema means something else inside another one. */
static bool has_reference(json_t *json)
{
    bool has = json_object_get(json, "$ref") != NULL;
    for (size_t i = 0; !has && i < json_array_size(json); i++)
        has = has_reference(json_array_get(json, i));
    const char *name;
    json_t *member;
    json_object_foreach (json, name, member)
        has = has || has_reference(member);
    return has;
}

static void check_laws(json_t *schema, json_t *value)
{
    enum verdict verdict = judge_trees(schema, value);
    check_verdict(json_pack("{s:O}", "const", value), value, FITS);
    check_verdict(json_pack("{s:[n,O]}", "enum", value), value, FITS);
    if (verdict == TOO_LARGE)
        return;
    json_t *reversed = fuzz_reversed(value);
    check_verdict(fuzz_reversed(schema), reversed, verdict);
    json_decref(reversed);
    if (has_reference(schema))
        return;
    check_verdict(json_pack("{s:O}", "not", schema), value, verdict == FITS ? MISFITS : FITS);
    check_verdict(json_pack("{s:[O,O]}", "allOf", schema, schema), value, verdict);
    check_verdict(json_pack("{s:[b,O]}", "anyOf", 0, schema), value, verdict);
    check_verdict(json_pack("{s:[O,b]}", "oneOf", schema, 0), value, verdict);
    check_verdict(json_pack("{s:[O,O]}", "oneOf", schema, schema), value, MISFITS);
    check_verdict(json_pack("{s:O,s:O}", "if", schema, "else", json_false()), value, verdict);
    check_verdict(json_pack("{s:{s:O},s:s}", "$defs", "a", schema, "$ref", "#/$defs/a"), value,
                  verdict);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str first, rest;
    if (!str_cut(fuzz_text(data, size), '\n', &first, &rest))
        return 0;
    json_t *schema = fuzz_parse(first);
    json_t *value = schema != NULL ? fuzz_parse(rest) : NULL;
    if (value != NULL && judge_trees(schema, NULL) == FITS)
        check_laws(schema, value);
    json_decref(value);
    json_decref(schema);
    return 0;
}
