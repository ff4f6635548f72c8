/* Who may do what: five roles, six kinds of action, one table. */
#ifndef PAWL_DOMAIN_ROLE_H
#define PAWL_DOMAIN_ROLE_H

#include "base/str.h"

enum {
    MAY_READ = 1,   /* see the tenant's workflows, runs, jobs, keys' records */
    MAY_RUN = 2,    /* put workflows, start and steer runs */
    MAY_WORK = 4,   /* claim and finish jobs */
    MAY_DECIDE = 8, /* approve and reject */
    MAY_ADMIN = 16, /* the tenant's API keys, releases of keys, audit trail; see its settings */
    /* Everything that concerns other tenants or the server itself: making tenants, their limits,
     * the bus, repair, backups. Only for those whose key is for all tenants. */
    MAY_RULE_SERVER = 32,
};

/* A table is read by its columns. */
/* clang-format off */
#define ROLES(X)                                                                                   \
    /* symbol         name        may */                                                           \
    X(ROLE_VIEWER,   "viewer",   MAY_READ)                                                         \
    X(ROLE_WORKER,   "worker",   MAY_READ | MAY_WORK)                                              \
    X(ROLE_APPROVER, "approver", MAY_READ | MAY_DECIDE)                                            \
    X(ROLE_OPERATOR, "operator", MAY_READ | MAY_RUN | MAY_WORK | MAY_DECIDE)                       \
    X(ROLE_ADMIN,    "admin",    MAY_READ | MAY_RUN | MAY_WORK | MAY_DECIDE | MAY_ADMIN | MAY_RULE_SERVER)
/* clang-format on */

enum role {
#define X(symbol, name, may) symbol,
    ROLES(X)
#undef X
        ROLE_COUNT
};

const char *role_name(enum role role);
/* ROLE_COUNT when there is no such role. */
enum role role_of(struct str name);
/* all_tenants: the role is one for all tenants ("*"), not for a single one. */
bool role_may(enum role role, bool all_tenants, unsigned action);

#endif
