/* Cookies. */
#include "api/cookie.h"

enum err cookie_find(struct call *c, const char *name, struct str *ret)
{
    struct str cookies;
    enum err e = call_header(c, "Cookie", &cookies);
    if (e != ERR_OK)
        return e;
    *ret = STR_NONE;
    while (cookies.len > 0 && ret->ptr == NULL) {
        struct str one;
        struct str own;
        struct str value;
        (void)str_cut(cookies, ';', &one, &cookies);
        if (str_cut(str_trim(one), '=', &own, &value) && str_is(own, name))
            *ret = value;
    }
    return ERR_OK;
}

struct str cookie_text(struct call *c, const struct cookie *cookie)
{
    struct buf text;
    buf_init(&text, 2 * KIB);
    buf_printf(&text, "%s=%.*s; HttpOnly; SameSite=%s; Max-Age=%lld%s", cookie->name,
               STR_ARG(cookie->value), cookie->follows_links ? "Lax" : "Strict",
               (long long)cookie->age_s, cookie->secure ? "; Secure" : "");
    return arena_take(&c->req->arena, &text);
}

bool cookie_is_secure(const struct call *c)
{
    return c->api->config.tls ||
           str_starts_with(http_header(c->req, "Origin", NULL), STR("https://"));
}
