/* The table of step types as functions. */
#include "domain/workflow/step_type.h"

static const struct {
    const char *name;
    unsigned flags;
} TYPES[] = {
#define X(symbol, token, flags, waits) [symbol] = {#token, flags},
    STEP_TYPES(X)
#undef X
};

static_assert(ARRAY_LEN(TYPES) == STEP_TYPE_COUNT, "one row per type");

const char *step_type_name(enum step_type type)
{
    assert(type < STEP_TYPE_COUNT);
    return TYPES[type].name;
}

bool step_type_parse(struct str name, enum step_type *ret)
{
    for (enum step_type type = 0; type < STEP_TYPE_COUNT; type++) {
        if (str_is(name, TYPES[type].name)) {
            *ret = type;
            return true;
        }
    }
    return false;
}

bool step_type_is(enum step_type type, unsigned flag)
{
    assert(type < STEP_TYPE_COUNT);
    return (TYPES[type].flags & flag) != 0;
}
