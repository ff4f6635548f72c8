/* Which requests a development server takes. It asks for no key, so a web page that the developer
 * has open, or a name that was pointed at this machine, could use it too: a browser says where a
 * request comes from, and that is checked here. Pure. */
#ifndef PAWL_DOMAIN_DEV_GUARD_H
#define PAWL_DOMAIN_DEV_GUARD_H

#include "base/problem.h"
#include "base/str.h"

/* What a request says about its origin; ptr NULL where the header is absent. */
struct dev_request {
    struct str host;       /* Host */
    struct str origin;     /* Origin */
    struct str fetch_site; /* Sec-Fetch-Site */
    struct str fetch_mode; /* Sec-Fetch-Mode */
    bool shows_page;       /* it asks for the page for people, which shows nothing of the data */
};

/* `listen` is the server's own HOST:PORT. ERR_HOST_REFUSED: Host names neither this machine
 * (localhost, *.localhost, 127.0.0.0/8, [::1]) nor HOST. A server that listens on all addresses
 * takes any Host. ERR_CROSS_SITE: the request comes from a page of another origin, even one of the
 * same site. A link from elsewhere may lead to the page for people. */
MUST_CHECK enum err dev_guard_check(const struct dev_request *r, struct str listen,
                                    struct problem *p);

#endif
