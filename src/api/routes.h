/* Every route of the HTTP interface. A route is added as one row in the file of its resource. */
#ifndef PAWL_API_ROUTES_H
#define PAWL_API_ROUTES_H

#include "api/route.h"

/* One table per resource, in its own file; each ends with a row without a method. A literal path
 * stands before a variable one that would fit too. */
#define ROUTE_TABLES(X) \
    X(RUN_ROUTES)       \
    X(STATS_ROUTES)     \
    X(JOB_ROUTES)       \
    X(ENTITY_ROUTES)    \
    X(APPROVAL_ROUTES)  \
    X(WORKFLOW_ROUTES)  \
    X(SCHEDULE_ROUTES)  \
    X(WEBHOOK_ROUTES)   \
    X(EVENT_ROUTES)     \
    X(SESSION_ROUTES)   \
    X(OIDC_ROUTES)      \
    X(ADMIN_ROUTES)     \
    X(AUDIT_ROUTES)     \
    X(METRICS_ROUTES)   \
    X(CONSOLE_ROUTES)   \
    X(SYSTEM_ROUTES)

#define X(table) extern const struct route table[];
ROUTE_TABLES(X)
#undef X

/* Every route in the order of the tables: start with NULL; NULL after the last. */
const struct route *route_next(const struct route *route);
/* The route of a request, with the path's variable parts as they came, still encoded; NULL: none
 * fits. `aside`: only those that are served at --metrics-listen. */
const struct route *route_find(struct str method, struct str path, bool aside,
                               struct str ret_params[static PARAMS_MAX]);
/* The methods that a path has, as in the header Allow; empty when it has none. */
enum { ALLOW_MAX = 64 };
void route_allow(struct str path, bool aside, char ret_allow[static ALLOW_MAX]);
/* The member of the body that may hold the idempotency key; NULL: none. */
const char *route_body_key(const struct route *route);

#endif
