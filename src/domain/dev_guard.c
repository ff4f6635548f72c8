/* The rules for requests to a development server. */
#include "domain/dev_guard.h"

#include <arpa/inet.h>

enum { QUOTED_MAX = 100 }; /* of a header in an error */

/* The host of HOST, HOST:PORT, [HOST] or [HOST]:PORT. Empty when it is malformed. */
static struct str host_of(struct str authority)
{
    struct str host = authority;
    struct str port = STR("0");
    int64_t number;
    if (authority.len > 0 && authority.ptr[0] == '[') {
        struct str rest;
        if (!str_cut((struct str){authority.ptr + 1, authority.len - 1}, ']', &host, &rest))
            return STR_NONE;
        if (rest.len > 0 && rest.ptr[0] != ':')
            return STR_NONE;
        if (rest.len > 0)
            port = (struct str){rest.ptr + 1, rest.len - 1};
    } else {
        struct str after;
        if (str_cut(authority, ':', &host, &after))
            port = after;
    }
    return str_to_i64(port, &number) && number >= 0 && number <= 65535 ? host : STR_NONE;
}

static bool is_loopback(struct str host)
{
    char text[INET6_ADDRSTRLEN];
    struct in_addr v4;
    struct in6_addr v6;
    if (str_eq_nocase(host, STR("localhost")))
        return true;
    if (host.len > 10 &&
        str_eq_nocase((struct str){host.ptr + host.len - 10, 10}, STR(".localhost")))
        return true;
    if (host.len >= sizeof(text))
        return false;
    (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(host));
    if (inet_pton(AF_INET, text, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static bool is_any_address(struct str host)
{
    return host.len == 0 || str_is(host, "0.0.0.0") || str_is(host, "::");
}

static enum err check_host(struct str given, struct str listen, struct problem *p)
{
    struct str own = host_of(listen);
    struct str host = host_of(given);
    if (given.ptr == NULL || is_any_address(own)) /* no browser leaves Host out */
        return ERR_OK;
    if (host.len > 0 && (str_eq_nocase(host, own) || is_loopback(host)))
        return ERR_OK;
    return problem_set(
        p, ERR_HOST_REFUSED,
        "A --dev server answers only to loopback host names, not \"%.*s\". Use localhost.",
        (int)MIN(given.len, (size_t)QUOTED_MAX), given.ptr);
}

/* Origin names the server by the same host and port as Host does. */
static bool is_own_origin(struct str origin, struct str host)
{
    struct str scheme;
    struct str rest;
    if (!str_cut(origin, ':', &scheme, &rest) || !str_starts_with(rest, STR("//")))
        return false;
    struct str authority = {rest.ptr + 2, rest.len - 2};
    return (str_is(scheme, "http") || str_is(scheme, "https")) && host.len > 0 &&
           str_eq_nocase(authority, host);
}

static enum err check_origin(const struct dev_request *r, struct problem *p)
{
    bool same_site = r->fetch_site.ptr == NULL || str_is(r->fetch_site, "same-origin") ||
                     str_is(r->fetch_site, "none");
    bool follows_link = r->shows_page && str_is(r->fetch_mode, "navigate");
    if (r->origin.ptr != NULL && !is_own_origin(r->origin, r->host))
        return problem_set(
            p, ERR_CROSS_SITE,
            "Pages from other origins cannot call a --dev server, and \"%.*s\" is not this server.",
            (int)MIN(r->origin.len, (size_t)QUOTED_MAX), r->origin.ptr);
    if (!same_site && !follows_link)
        return problem_set(
            p, ERR_CROSS_SITE,
            "Pages from other origins cannot call a --dev server (Sec-Fetch-Site: %.*s).",
            (int)MIN(r->fetch_site.len, (size_t)QUOTED_MAX), r->fetch_site.ptr);
    return ERR_OK;
}

enum err dev_guard_check(const struct dev_request *r, struct str listen, struct problem *p)
{
    enum err e = check_host(r->host, listen, p);
    return e == ERR_OK ? check_origin(r, p) : e;
}
