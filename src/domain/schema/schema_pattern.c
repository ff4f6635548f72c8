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

void keyword_check_pattern(struct reading *r, json_t *want)
{
    if (json_is_string(want))
        check_pattern(r, json_str(want));
    else
        fault_list_add(r->faults, "must be text");
}

void keyword_check_pattern_properties(struct reading *r, json_t *want)
{
    keyword_check_named(r, want);
    const char *pattern;
    json_t *schema;
    json_object_foreach (want, pattern, schema) {
        (void)schema;
        size_t back_to = fault_list_enter(r->faults, str_of(pattern));
        check_pattern(r, str_of(pattern));
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
    return matches(j, json_str(m->want), json_str(m->value)) ||
           judge_misfit_listing(j, "must match the pattern", m->want);
}

bool judge_matches_any(struct judge *j, json_t *patterns, const char *name)
{
    const char *pattern;
    json_t *schema;
    json_object_foreach (patterns, pattern, schema) {
        (void)schema;
        if (matches(j, str_of(pattern), str_of(name)))
            return true;
    }
    return false;
}

bool keyword_fits_pattern_properties(struct judge *j, const struct meeting *m)
{
    bool ok = true;
    const char *name;
    const char *pattern;
    json_t *member;
    json_t *schema;
    json_object_foreach (m->value, name, member) {
        json_object_foreach (m->want, pattern, schema) {
            if (judge_spend(j, 1) && matches(j, str_of(pattern), str_of(name)))
                ok = judge_member(j, schema, name, member) && ok;
        }
    }
    return ok;
}
