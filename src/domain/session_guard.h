/* Which requests a browser's cookie may sign. A browser sends cookies on its own, so a page of
 * another site could make it send a request with them. Browsers say where a request comes from,
 * and that is how such requests are recognized. SameSite=Strict keeps the cookie out of them
 * already; this is the second lock. Pure. */
#ifndef PAWL_DOMAIN_SESSION_GUARD_H
#define PAWL_DOMAIN_SESSION_GUARD_H

#include "base/problem.h"

/* Headers; ptr NULL: not sent. */
struct session_request {
    struct str host;
    struct str origin;
    struct str fetch_site;
    bool changes; /* any method but GET and HEAD */
};

/* ERR_CROSS_SITE unless the request comes from a page of this server itself, or, if it changes
 * nothing, from the person: a link that was typed, or a browser that does not say. */
MUST_CHECK enum err session_guard_check(const struct session_request *r, struct problem *p);

/* For a request without a cookie that would be given one: the same, but a client that is no browser
 * says nothing and may. */
MUST_CHECK enum err session_guard_check_sign_in(const struct session_request *r, struct problem *p);

#endif
