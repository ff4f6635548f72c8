/* Checks a schema, and a value against it, with the table of keywords. */
#include "domain/schema/schema.h"

#include "base/limits.h"
#include "domain/schema/keyword.h"

void schema_check_schema(const struct json *schema, struct fault_list *faults)
{
    assert(schema != NULL);
    struct reading r = {.faults = faults, .root = schema};
    keyword_check_schema(&r, r.root);
    assert(r.own_ids == 0);
    schema_map_release(&r.followed, NULL);
}

enum schema_verdict schema_check_value(const struct json *schema, const struct json *value,
                                       struct work_budget *work, struct fault_list *faults)
{
    assert(schema != NULL && value != NULL);
    struct judge j = {.faults = faults, .work = work, .root = schema};
    size_t before = faults->count;
    bool ok = judge_fits(&j, j.root, value);
    judge_release_patterns(&j);
    assert(j.quiet == 0 && j.depth == 0);
    if (work->left == 0)
        return SCHEMA_GAVE_UP;
    assert(ok || faults->count > before || faults->count == DEFINITION_FAULTS_MAX ||
           !buf_ok(faults->out));
    return ok ? SCHEMA_FITS : SCHEMA_MISFITS;
}
