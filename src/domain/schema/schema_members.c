/* The keywords that speak about the elements of an array and the members of an object. */
#include "domain/schema/keyword.h"

bool keyword_fits_items(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    size_t first = json_array_size(json_object_get(m->schema, "prefixItems"));
    for (size_t i = first; i < json_array_size(m->value) && j->work->left > 0; i++)
        ok = judge_element(j, m->want, i, json_array_get(m->value, i)) && ok;
    return ok;
}

bool keyword_fits_prefix(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    size_t count = MIN(json_array_size(m->want), json_array_size(m->value));
    for (size_t i = 0; i < count && j->work->left > 0; i++)
        ok = judge_element(j, json_array_get(m->want, i), i, json_array_get(m->value, i)) && ok;
    return ok;
}

static bool is_count_within(json_t *bound, enum bound which, size_t count)
{
    struct number have = {true, (int64_t)count, (double)count};
    int compared = schema_number_compare(have, schema_number_of(bound));
    return which == AT_LEAST ? compared >= 0 : compared <= 0;
}

bool keyword_fits_contains(struct judge *j, const struct meeting *m)
{
    json_t *min = json_object_get(m->schema, "minContains");
    json_t *max = json_object_get(m->schema, "maxContains");
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(m->value) && j->work->left > 0; i++)
        count += judge_quietly(j, m->want, json_array_get(m->value, i));
    if (min != NULL ? !is_count_within(min, AT_LEAST, count) : count == 0)
        return judge_misfit(j, "has too few elements that match contains: %zu", count);
    return max == NULL || is_count_within(max, AT_MOST, count) ||
           judge_misfit(j, "has too many elements that match contains: %zu", count);
}

bool keyword_fits_properties(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    const char *name;
    json_t *member;
    json_object_foreach (m->value, name, member) {
        json_t *schema = judge_spend(j, 1) ? json_object_get(m->want, name) : NULL;
        if (schema != NULL)
            ok = judge_member(j, schema, name, member) && ok;
    }
    return ok;
}

bool keyword_fits_additional(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    const json_t *known = json_object_get(m->schema, "properties");
    json_t *patterns = json_object_get(m->schema, "patternProperties");
    const char *name;
    json_t *member;
    json_object_foreach (m->value, name, member) {
        if (judge_spend(j, 1) && json_object_get(known, name) == NULL &&
            !judge_matches_any(j, patterns, name))
            ok = judge_member(j, m->want, name, member) && ok;
    }
    return ok;
}

bool keyword_fits_required(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    size_t i;
    json_t *name;
    json_array_foreach (m->want, i, name) {
        if (judge_spend(j, 1) && json_object_get(m->value, json_string_value(name)) == NULL)
            ok = judge_misfit(j, "the member \"%s\" is missing", json_string_value(name));
    }
    return ok;
}

/* Schemas judge JSON values, so each name is made one. */
bool keyword_fits_names(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    const char *name;
    json_t *member;
    json_object_foreach (m->value, name, member) {
        (void)member;
        json_t *text = judge_spend(j, 1) ? json_string(name) : NULL;
        if (text == NULL) {
            j->faults->out->failed |= j->work->left > 0;
            return false;
        }
        if (!judge_quietly(j, m->want, text))
            ok = judge_misfit(j, "the member name \"%s\" does not match propertyNames", name);
        json_decref(text);
    }
    return ok;
}

bool keyword_fits_dependent_required(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    const char *name;
    json_t *needed;
    json_object_foreach (m->want, name, needed) {
        if (!judge_spend(j, 1) || json_object_get(m->value, name) == NULL)
            continue;
        for (size_t i = 0; i < json_array_size(needed) && judge_spend(j, 1); i++) {
            const char *other = json_string_value(json_array_get(needed, i));
            if (json_object_get(m->value, other) == NULL)
                ok = judge_misfit(j, "the member \"%s\" is missing, but \"%s\" requires it", other,
                                  name);
        }
    }
    return ok;
}

bool keyword_fits_dependent_schemas(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    const char *name;
    json_t *schema;
    json_object_foreach (m->want, name, schema) {
        if (judge_spend(j, 1) && json_object_get(m->value, name) != NULL)
            ok = judge_fits(j, schema, m->value) && ok;
    }
    return ok;
}
