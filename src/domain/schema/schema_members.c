/* The keywords that speak about the elements of an array and the members of an object. */
#include "domain/schema/keyword.h"

bool keyword_fits_items(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    size_t first = json_length(json_member(m->schema, STR("prefixItems")));
    for (size_t i = first; i < json_length(m->value) && j->work->left > 0; i++)
        ok = judge_element(j, m->want, i, json_element(m->value, i)) && ok;
    return ok;
}

bool keyword_fits_prefix(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    size_t count = MIN(json_length(m->want), json_length(m->value));
    for (size_t i = 0; i < count && j->work->left > 0; i++)
        ok = judge_element(j, json_element(m->want, i), i, json_element(m->value, i)) && ok;
    return ok;
}

static bool is_count_within(const struct json *bound, enum bound which, size_t count)
{
    struct number have = {true, (int64_t)count, (double)count};
    int compared = schema_number_compare(have, schema_number_of(bound));
    return which == AT_LEAST ? compared >= 0 : compared <= 0;
}

bool keyword_fits_contains(struct judge *j, const struct meeting *m)
{
    const struct json *min = json_member(m->schema, STR("minContains"));
    const struct json *max = json_member(m->schema, STR("maxContains"));
    size_t count = 0;
    for (size_t i = 0; i < json_length(m->value) && j->work->left > 0; i++)
        count += judge_quietly(j, m->want, json_element(m->value, i));
    if (min != NULL ? !is_count_within(min, AT_LEAST, count) : count == 0)
        return judge_misfit(j, "has too few elements that match contains: %zu", count);
    return max == NULL || is_count_within(max, AT_MOST, count) ||
           judge_misfit(j, "has too many elements that match contains: %zu", count);
}

bool keyword_fits_properties(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    for (size_t i = 0; i < json_members(m->value); i++) {
        struct str name = json_name_at(m->value, i);
        const struct json *member = json_value_at(m->value, i);
        const struct json *schema = judge_spend(j, 1) ? json_member(m->want, name) : NULL;
        if (schema != NULL)
            ok = judge_member(j, schema, name, member) && ok;
    }
    return ok;
}

bool keyword_fits_additional(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    const struct json *known = json_member(m->schema, STR("properties"));
    const struct json *patterns = json_member(m->schema, STR("patternProperties"));
    for (size_t i = 0; i < json_members(m->value); i++) {
        struct str name = json_name_at(m->value, i);
        const struct json *member = json_value_at(m->value, i);
        if (judge_spend(j, 1) && json_member(known, name) == NULL &&
            !judge_matches_any(j, patterns, name))
            ok = judge_member(j, m->want, name, member) && ok;
    }
    return ok;
}

bool keyword_fits_required(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    for (size_t i = 0; i < json_length(m->want); i++) {
        struct str name = json_text_of(json_element(m->want, i));
        if (judge_spend(j, 1) && json_member(m->value, name) == NULL)
            ok = judge_misfit(j, "the member \"%s\" is missing", name.ptr);
    }
    return ok;
}

/* A name is a text by itself. */
bool keyword_fits_names(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    for (size_t i = 0; i < json_members(m->value); i++) {
        const struct json name = json_text_value(json_name_at(m->value, i));
        if (!judge_spend(j, 1))
            return false;
        if (!judge_quietly(j, m->want, &name))
            ok = judge_misfit(j, "the member name \"%s\" does not match propertyNames", name.text);
    }
    return ok;
}

bool keyword_fits_dependent_required(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    for (size_t i = 0; i < json_members(m->want); i++) {
        struct str name = json_name_at(m->want, i);
        const struct json *needed = json_value_at(m->want, i);
        if (!judge_spend(j, 1) || json_member(m->value, name) == NULL)
            continue;
        for (size_t k = 0; k < json_length(needed) && judge_spend(j, 1); k++) {
            struct str other = json_text_of(json_element(needed, k));
            if (json_member(m->value, other) == NULL)
                ok = judge_misfit(j, "the member \"%s\" is missing, but \"%s\" requires it",
                                  other.ptr, name.ptr);
        }
    }
    return ok;
}

bool keyword_fits_dependent_schemas(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    for (size_t i = 0; i < json_members(m->want); i++) {
        struct str name = json_name_at(m->want, i);
        const struct json *schema = json_value_at(m->want, i);
        if (judge_spend(j, 1) && json_member(m->value, name) != NULL)
            ok = judge_fits(j, schema, m->value) && ok;
    }
    return ok;
}
