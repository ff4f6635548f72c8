/* All routes as one table, and which of them a request means. */
#include "api/routes.h"

#include <stdio.h>

static const struct route *const TABLES[] = {
#define X(table) table,
    ROUTE_TABLES(X)
#undef X
};

/* The first row of the table at or after `i` that has one. */
static const struct route *first_from(size_t i)
{
    while (i < ARRAY_LEN(TABLES) && TABLES[i]->method == NULL)
        i++;
    return i < ARRAY_LEN(TABLES) ? TABLES[i] : NULL;
}

static size_t table_ending_at(const struct route *end)
{
    for (size_t i = 0; i < ARRAY_LEN(TABLES); i++) {
        const struct route *r = TABLES[i];
        while (r->method != NULL)
            r++;
        if (r == end)
            return i;
    }
    assert(!"not a row of any table");
    return ARRAY_LEN(TABLES);
}

const struct route *route_next(const struct route *route)
{
    if (route == NULL)
        return first_from(0);
    route++;
    return route->method != NULL ? route : first_from(table_ending_at(route) + 1);
}

/* Most patterns differ from a path before their first variable part. If these do not, they are cut
 * behind the last '/' that comes before it, which both have. */
static bool cut_beginning(struct str *pattern, struct str *path)
{
    size_t same = 0;
    for (size_t i = 0; i < pattern->len && pattern->ptr[i] != '{'; i++) {
        if (i == path->len || path->ptr[i] != pattern->ptr[i])
            return false;
        if (pattern->ptr[i] == '/')
            same = i + 1;
    }
    *pattern = (struct str){pattern->ptr + same, pattern->len - same};
    *path = (struct str){path->ptr + same, path->len - same};
    return true;
}

/* Does the path fit? Variable parts are left encoded in params; ptr NULL: there is no such part. */
static bool matches(struct str pattern, struct str path, struct str params[static PARAMS_MAX])
{
    if (!cut_beginning(&pattern, &path))
        return false;
    size_t n = 0;
    for (;;) {
        struct str want;
        struct str have;
        struct str rest = path;
        bool more_pattern = str_cut(pattern, '/', &want, &pattern);
        bool more_path = str_cut(path, '/', &have, &path);
        if (str_is(want, "{*}")) {
            assert(n < PARAMS_MAX && !more_pattern);
            params[n++] = rest;
            break;
        }
        if (str_is(want, "{}")) {
            if (have.len == 0 || n == PARAMS_MAX)
                return false;
            params[n++] = have;
        } else if (!str_eq(want, have)) {
            return false;
        }
        if (more_pattern != more_path)
            return false;
        if (!more_pattern)
            break;
    }
    while (n < PARAMS_MAX)
        params[n++] = STR_NONE;
    return true;
}

static bool is_served(const struct route *r, bool aside)
{
    return !aside || (r->flags & ROUTE_ASIDE) != 0;
}

const struct route *route_find(struct str method, struct str path, bool aside,
                               struct str ret_params[static PARAMS_MAX])
{
    if (method.len == 0)
        return NULL;
    if (str_is(method, "HEAD"))
        method = STR("GET");
    for (size_t i = 0; i < ARRAY_LEN(TABLES); i++) {
        for (const struct route *r = TABLES[i]; r->method != NULL; r++) {
            if (method.ptr[0] == r->method[0] && str_is(method, r->method) &&
                matches(str_of(r->pattern), path, ret_params) && is_served(r, aside))
                return r;
        }
    }
    return NULL;
}

void route_allow(struct str path, bool aside, char ret_allow[static ALLOW_MAX])
{
    size_t used = 0;
    ret_allow[0] = '\0';
    for (const struct route *r = route_next(NULL); r != NULL; r = route_next(r)) {
        struct str ignored[PARAMS_MAX];
        if (!matches(str_of(r->pattern), path, ignored) || !is_served(r, aside))
            continue;
        bool get = strcmp(r->method, "GET") == 0;
        int n = snprintf(ret_allow + used, ALLOW_MAX - used, "%s%s", used > 0 ? ", " : "",
                         get ? "GET, HEAD" : r->method);
        assert(n > 0 && used + (size_t)n < ALLOW_MAX);
        used += (size_t)n;
    }
}

const char *route_body_key(const struct route *route)
{
    for (size_t i = 0; i < route->param_count; i++) {
        if (route->params[i].kind == PARAM_KEY)
            return route->params[i].name;
    }
    return NULL;
}
