/* Which requests a browser's cookie may sign. */
#include "domain/session_guard.h"

/* "https://host:port" of "host:port"? The scheme may be another: a proxy may speak TLS for us. */
static bool is_own(struct str origin, struct str host)
{
    struct str scheme;
    struct str rest;
    return str_cut(origin, ':', &scheme, &rest) &&
           (str_is(scheme, "http") || str_is(scheme, "https")) &&
           str_starts_with(rest, STR("//")) &&
           str_eq_nocase((struct str){rest.ptr + 2, rest.len - 2}, host);
}

static enum err refuse(struct problem *p)
{
    return problem_set(p, ERR_CROSS_SITE,
                       "A session in a browser is for the pages of this server only. Programs send "
                       "an API key.");
}

enum err session_guard_check(const struct session_request *r, struct problem *p)
{
    if (r->fetch_site.ptr != NULL) {
        bool typed = str_is(r->fetch_site, "none") && !r->changes;
        return typed || str_is(r->fetch_site, "same-origin") ? ERR_OK : refuse(p);
    }
    if (r->origin.ptr != NULL)
        return is_own(r->origin, r->host) ? ERR_OK : refuse(p);
    return r->changes ? refuse(p) : ERR_OK;
}

enum err session_guard_check_sign_in(const struct session_request *r, struct problem *p)
{
    if (r->fetch_site.ptr == NULL && r->origin.ptr == NULL)
        return ERR_OK;
    return session_guard_check(r, p);
}
