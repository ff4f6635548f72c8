/* Which URLs the server may call. */
#include "domain/url.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const char INVALID[] = "is not a valid URL";

static bool has_space_or_control(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c == 0x7F)
            return true;
    }
    return false;
}

/* As far as one of `ends`, which *text then begins with, or all of it. */
static struct str take_until(struct str *text, const char *ends)
{
    size_t len = 0;
    while (len < text->len && strchr(ends, text->ptr[len]) == NULL)
        len++;
    struct str taken = {text->ptr, len};
    *text = (struct str){text->ptr + len, text->len - len};
    return taken;
}

static bool all_of(struct str s, const char *allowed)
{
    for (size_t i = 0; i < s.len; i++) {
        if (strchr(allowed, s.ptr[i]) == NULL)
            return false;
    }
    return s.len > 0;
}

/* Empty, or up to 65535. */
static bool is_port(struct str s)
{
    int64_t port = 0;
    return s.len == 0 || (all_of(s, "0123456789") && str_to_i64(s, &port) && port <= 65535);
}

static bool is_ipv6(struct str s)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    int len = snprintf(text, sizeof(text), "%.*s", STR_ARG(s));
    return (size_t)len < sizeof(text) && inet_pton(AF_INET6, text, &address) == 1;
}

/* A name, an IPv4 address or an IPv6 address in brackets, and perhaps a port. */
static bool is_host(struct str s)
{
    struct str host;
    struct str port;
    if (s.len > 0 && s.ptr[0] == '[') {
        s = (struct str){s.ptr + 1, s.len - 1};
        host = take_until(&s, "]");
        return is_ipv6(host) && s.len > 0 &&
               (s.len == 1 || (s.ptr[1] == ':' && is_port((struct str){s.ptr + 2, s.len - 2})));
    }
    if (!str_cut(s, ':', &host, &port))
        port = STR("");
    struct str rest = host;
    (void)take_until(&rest, " /:#?!@{}[]\\$'\"^`*<>=;,+&()%");
    return host.len > 0 && rest.len == 0 && is_port(port);
}

const char *url_fault(struct str url)
{
    if (has_space_or_control(url))
        return INVALID;
    struct str scheme = take_until(&url, ":/?#");
    size_t slashes = 0;
    if (scheme.len == 0 || url.len == 0 || url.ptr[0] != ':')
        return INVALID;
    while (slashes + 1 < url.len && url.ptr[slashes + 1] == '/')
        slashes++;
    if (!str_eq_nocase(scheme, STR("http")) && !str_eq_nocase(scheme, STR("https")))
        return "must start with http:// or https://";
    if (slashes < 1 || slashes > 3)
        return INVALID;
    url = (struct str){url.ptr + 1 + slashes, url.len - 1 - slashes};
    struct str authority = take_until(&url, "/?#");
    if (memchr(authority.ptr, '@', authority.len) != NULL)
        return "must not contain a user name";
    return is_host(authority) ? NULL : INVALID;
}
