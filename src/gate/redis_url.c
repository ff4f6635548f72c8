/* The address of a Redis server. */
#include "gate/redis_url.h"

enum { REDIS_PORT = 6379, DATABASE_MAX = 1000000 };

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* False when it does not fit, or is not well-formed. */
static bool decode(struct str text, char *out, size_t size)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex_digit(text.ptr[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(text.ptr[i + 2]) : -1;
            if (low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0' || len + 1 >= size)
            return false;
        out[len++] = c;
    }
    out[len] = '\0';
    return true;
}

static bool read_number(struct str text, int64_t min, int64_t max, int *ret)
{
    int64_t n;
    if (!str_to_i64(text, &n) || n < min || n > max)
        return false;
    *ret = (int)n;
    return true;
}

static bool read_user(struct str text, struct redis_url *u)
{
    struct str user;
    struct str password = STR_NONE;
    (void)str_cut(text, ':', &user, &password);
    return decode(user, u->user, sizeof(u->user)) &&
           decode(password, u->password, sizeof(u->password)) &&
           (u->user[0] == '\0' || u->password[0] != '\0');
}

/* HOST[:PORT], where HOST may be an IPv6 address in brackets. */
static bool read_host(struct str text, struct redis_url *u)
{
    struct str host;
    struct str port = STR_NONE;
    bool has_port = false;
    if (str_starts_with(text, STR("["))) {
        struct str rest;
        if (!str_cut((struct str){text.ptr + 1, text.len - 1}, ']', &host, &rest))
            return false;
        has_port = rest.len > 0;
        if (has_port && rest.ptr[0] != ':')
            return false;
        port = has_port ? (struct str){rest.ptr + 1, rest.len - 1} : STR_NONE;
    } else {
        has_port = str_cut(text, ':', &host, &port);
    }
    u->port = REDIS_PORT;
    return host.len > 0 && decode(host, u->host, sizeof(u->host)) &&
           (!has_port || read_number(port, 1, 65535, &u->port));
}

/* The user may hold an "@" only if it is encoded; a password often holds more than it should. */
static bool cut_user(struct str text, struct str *ret_user, struct str *ret_rest)
{
    size_t at = text.len;
    while (at > 0 && text.ptr[at - 1] != '@')
        at--;
    *ret_rest = (struct str){text.ptr + at, text.len - at};
    *ret_user = at > 0 ? (struct str){text.ptr, at - 1} : STR_NONE;
    return at > 0;
}

const char *redis_url_parse(struct str text, struct redis_url *ret)
{
    struct redis_url u = {.port = REDIS_PORT};
    struct str prefix = STR("redis://");
    if (str_starts_with(text, STR("rediss://")))
        return "asks for TLS, which this build cannot speak to Redis; put a TLS proxy such as "
               "stunnel in between";
    if (!str_starts_with(text, prefix))
        return "must begin with redis://";
    struct str rest = {text.ptr + prefix.len, text.len - prefix.len};
    struct str user;
    struct str host;
    struct str database = STR_NONE;
    bool has_user = cut_user(rest, &user, &rest);
    (void)str_cut(rest, '/', &host, &database);
    if (has_user && !read_user(user, &u))
        return "has a user or a password that is not valid";
    if (!read_host(host, &u))
        return "has a host or a port that is not valid";
    if (database.len > 0 && !read_number(database, 0, DATABASE_MAX, &u.database))
        return "has a database that is not a number";
    *ret = u;
    return NULL;
}
