/* The table of roles as functions. */
#include "domain/role.h"

static const struct {
    const char *name;
    unsigned may;
} ROWS[] = {
#define X(symbol, name, may) {name, may},
    ROLES(X)
#undef X
};

static_assert(ARRAY_LEN(ROWS) == ROLE_COUNT, "one row per role");

const char *role_name(enum role role)
{
    assert(role < ROLE_COUNT);
    return ROWS[role].name;
}

enum role role_of(struct str name)
{
    enum role role = 0;
    while (role < ROLE_COUNT && !str_is(name, ROWS[role].name))
        role++;
    return role;
}

bool role_may(enum role role, bool all_tenants, unsigned action)
{
    assert(role < ROLE_COUNT && action != 0);
    if ((action & MAY_RULE_SERVER) != 0 && !all_tenants)
        return false;
    return (ROWS[role].may & action) == action;
}
