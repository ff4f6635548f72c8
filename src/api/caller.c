/* Who sends a request: by API key, by the session in a cookie, or with --dev by its headers. */
#include "api/caller.h"

#include "api/cookie.h"
#include "domain/dev_guard.h"
#include "domain/session_guard.h"
#include "domain/tenant.h"

/* A page that a link on another site may lead to. */
static bool shows_page(const struct call *c)
{
    struct str path = c->req->path;
    bool page =
        str_is(path, "/") || str_is(path, "/console") || str_starts_with(path, STR("/console/"));
    return page && str_is(c->req->method, "GET");
}

enum err caller_check_origin(struct call *c)
{
    struct str listen = str_of(c->api->config.dev_listen);
    if (listen.ptr == NULL)
        return ERR_OK;
    size_t origins;
    struct dev_request r = {
        .host = str_trim(http_header(c->req, "Host", NULL)),
        .origin = str_trim(http_header(c->req, "Origin", &origins)),
        .fetch_site = str_trim(http_header(c->req, "Sec-Fetch-Site", NULL)),
        .shows_page = shows_page(c),
    };
    if (r.shows_page) /* the mode matters only there */
        r.fetch_mode = str_trim(http_header(c->req, "Sec-Fetch-Mode", NULL));
    if (origins > 1)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST, "The header Origin is sent twice");
    return dev_guard_check(&r, listen, &c->op.problem);
}

/* --- the key --- */

/* ptr NULL: there is none. */
static enum err api_key_of(struct call *c, struct str *ret)
{
    struct str bearer = STR_NONE;
    struct str plain = STR_NONE;
    enum err e = call_header(c, "Authorization", &bearer);
    if (e == ERR_OK)
        e = call_header(c, "X-API-Key", &plain);
    if (e != ERR_OK)
        return e;
    struct str scheme;
    struct str token;
    if (str_cut(bearer, ' ', &scheme, &token) && str_eq_nocase(scheme, STR("Bearer")))
        *ret = str_trim(token);
    else
        *ret = plain;
    return ERR_OK;
}

/* --- the session --- */

static struct session_request session_request_of(const struct call *c)
{
    return (struct session_request){
        .host = str_trim(http_header(c->req, "Host", NULL)),
        .origin = str_trim(http_header(c->req, "Origin", NULL)),
        .fetch_site = str_trim(http_header(c->req, "Sec-Fetch-Site", NULL)),
        .changes = !str_is(c->req->method, "GET") && !str_is(c->req->method, "HEAD"),
    };
}

enum err caller_check_sign_in(struct call *c)
{
    struct session_request r = session_request_of(c);
    return session_guard_check_sign_in(&r, &c->op.problem);
}

static enum err session_of(struct call *c)
{
    enum err e = cookie_find(c, SESSION_COOKIE, &c->key);
    if (e != ERR_OK)
        return e;
    if (c->key.ptr == NULL)
        return problem_set(&c->op.problem, ERR_UNAUTHENTICATED,
                           "Send an API key: Authorization: Bearer pawl_… or X-API-Key: pawl_…");
    c->has_session = true;
    struct session_request r = session_request_of(c);
    return session_guard_check(&r, &c->op.problem);
}

/* A tenant's keys are made in another shard than its own, which may not know it yet: the first
 * request makes it there too. */
static bool is_known(const struct call *c, struct str tenant)
{
    const struct api_auth *auth = c->api->config.auth;
    if (auth == NULL || !c->op.caller.all_tenants)
        return auth != NULL;
    struct str named = c->route->scope == OF_NAMED ? c->params[0] : tenant;
    return tenant_id_ok(named) && auth->knows_tenant(auth->ctx, named);
}

/* The tenant that the key's holder acts on: its own, or with a key for "*" the one it names. */
static enum err key_caller(struct call *c, struct str tenant, const struct auth_identity *id)
{
    struct caller *who = &c->op.caller;
    who->all_tenants = str_is(id->tenant, "*");
    who->creates_tenant = who->tenant_known = is_known(c, tenant);
    who->role = id->role;
    who->actor = arena_str(&c->req->arena, id->actor);
    who->tenant = tenant.len > 0 ? tenant : arena_str(&c->req->arena, id->tenant);
    if (who->actor.ptr == NULL || who->tenant.ptr == NULL)
        return call_no_memory(c);
    if (tenant.len > 0 && !who->all_tenants && !str_eq(tenant, id->tenant))
        return problem_set(&c->op.problem, ERR_FORBIDDEN,
                           "X-Tenant-ID names another tenant than the one this key belongs to");
    return ERR_OK;
}

static enum err dev_caller(struct call *c, struct str tenant, struct str actor)
{
    struct caller *who = &c->op.caller;
    who->role = ROLE_ADMIN;
    who->creates_tenant = true;
    who->all_tenants = true;
    who->tenant_known = c->route->scope == OF_NAMED && is_known(c, tenant);
    who->tenant = tenant.len > 0 ? tenant : STR("default");
    who->actor = actor.len > 0 ? actor : STR("dev");
    return ERR_OK;
}

/* --- the headers --- */

static bool printable(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7F)
            return false;
    }
    return str_is_utf8(s);
}

static enum err read_headers(struct call *c, struct str *ret_tenant, struct str *ret_actor)
{
    enum err e = call_header(c, "X-Tenant-ID", ret_tenant);
    if (e == ERR_OK)
        e = call_header(c, "X-Actor", ret_actor);
    if (e != ERR_OK)
        return e;
    if (ret_tenant->ptr != NULL && !str_is(*ret_tenant, "*") && !tenant_id_ok(*ret_tenant))
        return problem_set(
            &c->op.problem, ERR_BAD_REQUEST,
            "X-Tenant-ID must be up to %d letters, digits or any of _ - . :", TENANT_ID_MAX);
    if (ret_actor->len > ACTOR_MAX || !printable(*ret_actor))
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "X-Actor must be printable text of at most %d bytes", ACTOR_MAX);
    return ERR_OK;
}

static enum err find_key(const struct api *api, struct str key, struct str peer, struct problem *p,
                         struct auth_identity *ret)
{
    const struct api_auth *auth = api->config.auth;
    return auth != NULL ? auth->identify(auth->ctx, key, peer, p, ret)
                        : engine_identify(api->config.engine, key, peer, p, ret);
}

static enum err find_session(const struct api *api, struct str text, struct problem *p,
                             struct auth_identity *ret)
{
    const struct api_auth *auth = api->config.auth;
    return auth != NULL ? auth->identify_session(auth->ctx, text, p, ret)
                        : engine_identify_session(api->config.engine, text, p, ret);
}

/* Whose key or session it is. */
static enum err find_owner(struct call *c, struct str peer, struct problem *p,
                           struct auth_identity *ret)
{
    return c->has_session ? find_session(c->api, c->key, p, ret)
                          : find_key(c->api, c->key, peer, p, ret);
}

uint64_t caller_epoch(const struct api *api)
{
    const struct api_auth *auth = api->config.auth;
    return auth != NULL ? auth->epoch(auth->ctx) : engine_auth_epoch(api->config.engine);
}

static enum err identify(struct call *c)
{
    struct str tenant = STR_NONE;
    struct str actor = STR_NONE;
    c->op.caller.peer = c->req->peer;
    enum err e = read_headers(c, &tenant, &actor);
    if (e != ERR_OK)
        return e;
    if (c->api->config.dev_listen != NULL)
        return dev_caller(c, tenant, actor);
    e = api_key_of(c, &c->key);
    if (e == ERR_OK && c->key.ptr == NULL)
        e = session_of(c);
    if (e != ERR_OK)
        return e;
    struct auth_identity id;
    c->key_epoch = caller_epoch(c->api);
    e = find_owner(c, c->req->peer, &c->op.problem, &id);
    if (e != ERR_OK)
        return e;
    c->session_expires_at = id.expires_at;
    return key_caller(c, tenant, &id);
}

enum err caller_identify_key(struct call *c, struct str key, struct auth_identity *ret)
{
    c->op.caller.peer = c->req->peer;
    enum err e = find_key(c->api, key, c->req->peer, &c->op.problem, ret);
    return e == ERR_OK ? key_caller(c, STR_NONE, ret) : e;
}

/* --- may they? --- */

/* The least role that is enough. */
static enum role needed_role(unsigned may)
{
    enum role role = 0;
    while (role < ROLE_COUNT - 1 && !role_may(role, true, may))
        role++;
    return role;
}

static enum err forbidden(struct call *c)
{
    const struct caller *who = &c->op.caller;
    if (role_may(who->role, true, c->route->may))
        return problem_set(&c->op.problem, ERR_FORBIDDEN,
                           "Requires an admin key for all tenants (*); this key is for one.");
    return problem_set(&c->op.problem, ERR_FORBIDDEN, "Requires role %s; this key is %s.",
                       role_name(needed_role(c->route->may)), role_name(who->role));
}

static bool is_open(const struct call *c)
{
    return (c->route->flags & ROUTE_OPEN) != 0 || c->aside;
}

enum err caller_identify(struct call *c)
{
    return is_open(c) ? ERR_OK : identify(c);
}

enum err caller_authorize(struct call *c)
{
    const struct route *r = c->route;
    if (is_open(c))
        return ERR_OK;
    if (!role_may(c->op.caller.role, c->op.caller.all_tenants, r->may))
        return forbidden(c);
    if ((r->flags & ROUTE_SERVER_KEY) != 0 && !c->op.caller.all_tenants)
        return problem_set(&c->op.problem, ERR_FORBIDDEN,
                           "Requires a key for all tenants (*); this key is for one.");
    bool needs_tenant =
        r->may != MAY_WORK && (r->flags & (ROUTE_NO_TENANT | ROUTE_ANY_TENANT)) == 0;
    if (needs_tenant && str_is(c->op.caller.tenant, "*"))
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "This key is for all tenants: name one in X-Tenant-ID");
    return ERR_OK;
}

/* --- later --- */

bool caller_key_holds(struct call *c)
{
    uint64_t epoch = caller_epoch(c->api);
    if (c->has_session && env_now_ms(c->api->config.env) >= c->session_expires_at)
        return false;
    if (c->key.ptr == NULL || epoch == c->key_epoch)
        return true;
    struct auth_identity id;
    struct problem ignored;
    problem_init(&ignored);
    enum err e = find_owner(c, STR_NONE, &ignored, &id);
    problem_release(&ignored);
    if (e == ERR_OK)
        c->key_epoch = epoch;
    return e != ERR_UNAUTHENTICATED;
}

enum err caller_revoked(struct call *c)
{
    problem_clear(&c->op.problem);
    return problem_set(&c->op.problem, ERR_UNAUTHENTICATED,
                       c->has_session ? "The session ended while the request waited"
                                      : "The API key was revoked while the request waited");
}
