/* Checks a schema, and a value against it, with the table of keywords. */
#include "domain/schema/schema.h"

#include "base/limits.h"
#include "domain/schema/keyword.h"

/* Walking an object takes a pointer to what might change; nothing here changes it. */
static json_t *walkable(const json_t *value)
{
    return (json_t *)(uintptr_t)value;
}

void schema_check_schema(const json_t *schema, struct fault_list *faults)
{
    assert(schema != NULL);
    struct reading r = {.faults = faults, .root = walkable(schema)};
    keyword_check_schema(&r, r.root);
    assert(r.own_ids == 0);
    schema_map_release(&r.followed, NULL);
}

enum schema_verdict schema_check_value(const json_t *schema, const json_t *value,
                                       struct work_budget *work, struct fault_list *faults)
{
    assert(schema != NULL && value != NULL);
    struct judge j = {.faults = faults, .work = work, .root = walkable(schema)};
    size_t before = faults->count;
    bool ok = judge_fits(&j, j.root, walkable(value));
    judge_release_patterns(&j);
    assert(j.quiet == 0 && j.depth == 0);
    if (work->left == 0)
        return SCHEMA_GAVE_UP;
    assert(ok || faults->count > before || faults->count == DEFINITION_FAULTS_MAX ||
           !buf_ok(faults->out));
    return ok ? SCHEMA_FITS : SCHEMA_MISFITS;
}
