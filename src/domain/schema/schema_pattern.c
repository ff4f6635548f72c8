/* pattern and patternProperties. An expression is compiled when it is first met in a judgement, and
 * kept to its end. */
#include "domain/schema/keyword.h"

#include "base/limits.h"

enum { PATTERN_SIZE_PER_STEP = 8 };

/* --- may a schema say this? --- */

static void check_pattern(struct reading *r, struct str pattern)
{
    /* Nobody would read another fault, and compiling takes a while. */
    if (r->patterns_size > SCHEMA_PATTERNS_MAX || r->faults->count >= DEFINITION_FAULTS_MAX)
        return;
    struct regex_fault fault;
    struct regex *compiled = regex_compile(pattern, &fault);
    if (compiled != NULL) {
        r->patterns_size += regex_size(compiled);
        if (r->patterns_size > SCHEMA_PATTERNS_MAX)
            fault_list_add(r->faults, "the patterns of this schema are too large together");
        regex_free(compiled);
    } else if (fault.why != NULL) {
        fault_list_add(r->faults, "is not a supported regular expression: at byte %zu: %s",
                       fault.at, fault.why);
    } else {
        r->faults->out->failed = true;
    }
}

void keyword_check_pattern(struct reading *r, const struct json *want)
{
    if (json_is(want, JSON_KIND_TEXT))
        check_pattern(r, json_text_of(want));
    else
        fault_list_add(r->faults, "must be text");
}

void keyword_check_pattern_properties(struct reading *r, const struct json *want)
{
    keyword_check_named(r, want);
    for (size_t i = 0; i < json_members(want); i++) {
        struct str pattern = json_name_at(want, i);
        size_t back_to = fault_list_enter(r->faults, pattern);
        check_pattern(r, pattern);
        fault_list_leave(r->faults, back_to);
    }
}

/* --- does a value fit? --- */

/* `pattern` lives as long as the schema, so its address stands for it. NULL: memory ran out. */
static struct regex *compiled(struct judge *j, struct str pattern)
{
    void **known = schema_map_at(&j->patterns, pattern.ptr);
    if (known != NULL && *known == NULL) {
        struct regex_fault fault;
        struct regex *r = regex_compile(pattern, &fault);
        assert(r != NULL || fault.why == NULL);
        *known = r;
        if (r != NULL)
            (void)judge_spend(j, 1 + (pattern.len + regex_size(r)) / PATTERN_SIZE_PER_STEP);
    }
    return known != NULL ? *known : NULL;
}

static bool matches(struct judge *j, struct str pattern, struct str text)
{
    struct regex *r = compiled(j, pattern);
    if (r == NULL)
        j->faults->out->failed = true;
    return r != NULL && j->work->left > 0 && regex_search(r, text, j->work);
}

static void free_regex(void *value)
{
    regex_free(value);
}

void judge_release_patterns(struct judge *j)
{
    schema_map_release(&j->patterns, free_regex);
}

bool keyword_fits_pattern(struct judge *j, const struct meeting *m)
{
    return matches(j, json_text_of(m->want), json_text_of(m->value)) ||
           judge_misfit_listing(j, "must match the pattern", m->want);
}

bool judge_matches_any(struct judge *j, const struct json *patterns, struct str name)
{
    for (size_t i = 0; i < json_members(patterns); i++) {
        if (matches(j, json_name_at(patterns, i), name))
            return true;
    }
    return false;
}

bool keyword_fits_pattern_properties(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    for (size_t i = 0; i < json_members(m->value); i++) {
        struct str name = json_name_at(m->value, i);
        const struct json *member = json_value_at(m->value, i);
        for (size_t k = 0; k < json_members(m->want); k++) {
            if (judge_spend(j, 1) && matches(j, json_name_at(m->want, k), name))
                ok = judge_member(j, json_value_at(m->want, k), name, member) && ok;
        }
    }
    return ok;
}
