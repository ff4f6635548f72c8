/* The types of steps that a definition may have. */
#include "domain/step_type.h"

static const char *const TYPE_NAMES[] = {
#define X(symbol, name, runs) [symbol] = name,
    STEP_TYPES(X)
#undef X
};

static const bool TYPE_RUNS[] = {
#define X(symbol, name, runs) [symbol] = runs,
    STEP_TYPES(X)
#undef X
};

static_assert(ARRAY_LEN(TYPE_NAMES) == STEP_TYPE_COUNT, "every step type has a name");

const char *step_type_name(enum step_type type)
{
    assert(type < STEP_TYPE_COUNT);
    return TYPE_NAMES[type];
}

bool step_type_parse(struct str name, enum step_type *ret)
{
    for (unsigned i = 0; i < STEP_TYPE_COUNT; i++) {
        if (str_is(name, step_type_name((enum step_type)i))) {
            *ret = (enum step_type)i;
            return true;
        }
    }
    return false;
}

bool step_type_runs(enum step_type type)
{
    assert(type < STEP_TYPE_COUNT);
    return TYPE_RUNS[type];
}
