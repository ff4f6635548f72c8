/* The table of step types. */
#include "core/run/step_ops.h"

#include "core/run/run_values.h"
#include "core/txn/job_row.h"

static const struct {
    step_begin_fn *begin;
    const struct step_waits *waits;
} OPS[] = {
#define X(symbol, token, flags, waits) [symbol] = {step_##token##_begin, &step_waits_##waits},
    STEP_TYPES(X)
#undef X
};

static_assert(ARRAY_LEN(OPS) == STEP_TYPE_COUNT, "one row per type");

step_begin_fn *step_begin_of(enum step_type type)
{
    assert(type < STEP_TYPE_COUNT);
    return OPS[type].begin;
}

const struct step_waits *step_waits_of_type(enum step_type type)
{
    assert(type < STEP_TYPE_COUNT);
    return OPS[type].waits;
}

const struct step_waits *step_waits_of(const struct definition *def, const struct job *job)
{
    return job->undo ? &step_waits_plain : step_waits_of_type(job_step(def, job)->type);
}

enum err step_fill_text(struct step_item *i, const struct json *template, struct str *ret)
{
    const struct json *filled = template;
    enum err e = ERR_OK;
    if (expr_has_template(template))
        e = values_fill(i->m, template, i->value, &i->p, &filled);
    return e == ERR_OK ? values_text(i->m->tx, filled, ret) : e;
}
