/* Cookies: the session, and a sign-in at an OpenID provider that is under way. */
#ifndef PAWL_API_COOKIE_H
#define PAWL_API_COOKIE_H

#include "api/call.h"

#define SESSION_COOKIE "pawl_session"
#define SIGN_IN_COOKIE "pawl_sign_in"

/* The first cookie of this name; ptr NULL: there is none. */
MUST_CHECK enum err cookie_find(struct call *c, const char *name, struct str *ret);

struct cookie {
    const char *name;
    struct str value; /* empty, with an age of 0: the browser forgets it */
    int64_t age_s;
    bool secure;
    bool follows_links; /* SameSite=Lax instead of Strict */
};

/* As in Set-Cookie, out of reach of scripts; ptr NULL when memory ran out. Without a path: the
 * browser sends it to the paths beside that of the request, /api/v1/…, below whatever prefix a
 * proxy adds. */
struct str cookie_text(struct call *c, const struct cookie *cookie);

/* Does the browser speak TLS, with us or with a proxy? It says so in Origin. */
bool cookie_is_secure(const struct call *c);

#endif
