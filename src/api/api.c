/* The path of every request: route → who → key → body → engine → answer. */
#include "api/call.h"

#include "domain/dev_guard.h"
#include "domain/tenant.h"

#include <fcntl.h>
#include <unistd.h>

/* A path and the number of an update. */
#define PLACE_ROOM(path) ((path).len + sizeof("/-9223372036854775808"))

struct api *api_new(const struct api_config *config)
{
    struct api *api = calloc(1, sizeof(*api));
    if (api == NULL)
        return NULL;
    api->config = *config;
    api->metrics = metrics_maker_new(api);
    if (api->metrics == NULL) {
        free(api);
        return NULL;
    }
    return api;
}

void api_free(struct api *api)
{
    assert(api == NULL || api->streams == NULL);
    if (api != NULL)
        metrics_maker_free(api->metrics);
    free(api);
}

void api_tick(struct api *api, int64_t mono_ms)
{
    streams_tick(api, mono_ms);
    metrics_tick(api);
}

int api_timeout_ms(const struct api *api)
{
    return metrics_timeout_ms(api);
}

void api_drain(struct api *api)
{
    streams_end(api);
}

/* --- calls --- */

/* With the request: what is sent points into the op's buffers. */
static void call_cleanup(void *user)
{
    struct call *c = user;
    call_free_body(c);
    op_release(&c->op);
    metrics_text_drop(c->metrics_text);
}

static void send_problem(struct call *c, const char *allow)
{
    struct str route = c->route != NULL ? str_of(c->route->pattern) : STR_NONE;
    http_send_problem(c->req, &c->op.problem, route, allow);
}

void call_send_json(struct call *c, int status, struct str body)
{
    struct http_reply reply;
    http_reply_init(&reply, status, STR("application/json"), body);
    reply.route = str_of(c->route->pattern);
    http_send(c->req, &reply);
}

/* --- who may call a development server --- */

static enum err check_origin(struct call *c)
{
    struct str listen = str_of(c->api->config.dev_listen);
    if (listen.ptr == NULL)
        return ERR_OK;
    size_t origins;
    struct dev_request r = {
        .host = str_trim(http_header(c->req, "Host", NULL)),
        .origin = str_trim(http_header(c->req, "Origin", &origins)),
        .fetch_site = str_trim(http_header(c->req, "Sec-Fetch-Site", NULL)),
        .shows_page = str_is(c->req->path, "/") && str_is(c->req->method, "GET"),
    };
    if (r.shows_page) /* its mode matters there alone */
        r.fetch_mode = str_trim(http_header(c->req, "Sec-Fetch-Mode", NULL));
    if (origins > 1)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST, "there are two Origin headers");
    return dev_guard_check(&r, listen, &c->op.problem);
}

/* --- routing --- */

/* Does the path fit? Variable parts are left encoded in params. */
static bool matches(struct str pattern, struct str path, struct str *params)
{
    size_t n = 0;
    for (;;) {
        struct str want;
        struct str have;
        bool more_pattern = str_cut(pattern, '/', &want, &pattern);
        bool more_path = str_cut(path, '/', &have, &path);
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
            return true;
    }
}

static enum err no_route(struct call *c, bool known_path, char *allow, size_t allow_size)
{
    if (!known_path)
        return problem_set(&c->op.problem, ERR_NOT_FOUND, "there is nothing at this path");
    size_t used = 0;
    struct str ignored[PARAMS_MAX];
    for (const struct route *r = ROUTES; r->method != NULL; r++) {
        if (!matches(str_of(r->pattern), c->req->path, ignored))
            continue;
        int n = snprintf(allow + used, allow_size - used, "%s%s", used > 0 ? ", " : "", r->method);
        assert(n > 0 && used + (size_t)n < allow_size);
        used += (size_t)n;
        if (strcmp(r->method, "GET") == 0) {
            n = snprintf(allow + used, allow_size - used, ", HEAD");
            used += (size_t)n;
        }
    }
    return problem_set(&c->op.problem, ERR_METHOD_NOT_ALLOWED, "allowed here: %s", allow);
}

/* The subscriber beside the main one has a few routes only. */
static bool is_served(const struct call *c, const struct route *r)
{
    return !c->aside || (r->flags & ROUTE_ASIDE) != 0;
}

static enum err find_route(struct call *c, char *allow, size_t allow_size)
{
    struct str method = str_is(c->req->method, "HEAD") ? STR("GET") : c->req->method;
    bool known_path = false;
    for (const struct route *r = ROUTES; r->method != NULL; r++) {
        struct str params[PARAMS_MAX] = {STR_NONE};
        if (!matches(str_of(r->pattern), c->req->path, params) || !is_served(c, r))
            continue;
        known_path = true;
        /* A literal path beats a variable one that would fit too, because it stands first in the
         * table. */
        if (!str_eq(method, str_of(r->method)))
            continue;
        c->route = r;
        for (size_t i = 0; i < PARAMS_MAX; i++) {
            if (params[i].ptr != NULL && !http_decode(c->req, params[i], &c->params[i]))
                return problem_set(&c->op.problem, ERR_BAD_REQUEST, "the path is badly encoded");
        }
        return ERR_OK;
    }
    return no_route(c, known_path, allow, allow_size);
}

/* --- who --- */

static enum err header_once(struct call *c, const char *name, struct str *ret)
{
    size_t count;
    struct str value = str_trim(http_header(c->req, name, &count));
    if (count > 1)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST, "there are two %s headers", name);
    *ret = STR_NONE;
    if (count == 0)
        return ERR_OK;
    *ret = arena_str(&c->req->arena, value);
    return ret->ptr != NULL ? ERR_OK : call_no_memory(c);
}

static bool printable(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7F)
            return false;
    }
    return str_is_utf8(s);
}

static enum err dev_caller(struct call *c, struct str tenant, struct str actor)
{
    struct caller *who = &c->op.caller;
    who->role = ROLE_ADMIN;
    who->creates_tenant = true;
    who->all_tenants = true;
    who->tenant = tenant.len > 0 ? tenant : STR("default");
    who->actor = actor.len > 0 ? actor : STR("dev");
    return ERR_OK;
}

/* The tenant that a key's holder acts on: its own, or with a key for "*" the one it names. */
static enum err key_caller(struct call *c, struct str tenant, const struct auth_identity *id)
{
    struct caller *who = &c->op.caller;
    who->all_tenants = str_is(id->tenant, "*");
    who->role = id->role;
    who->actor = arena_str(&c->req->arena, id->actor);
    who->tenant = tenant.len > 0 ? tenant : arena_str(&c->req->arena, id->tenant);
    if (who->actor.ptr == NULL || who->tenant.ptr == NULL)
        return call_no_memory(c);
    if (tenant.len > 0 && !who->all_tenants && !str_eq(tenant, id->tenant))
        return problem_set(&c->op.problem, ERR_FORBIDDEN,
                           "this key belongs to another tenant than X-Tenant-ID names");
    return ERR_OK;
}

static enum err forbidden(struct call *c)
{
    const struct caller *who = &c->op.caller;
    if (role_may(who->role, true, c->route->may))
        return problem_set(&c->op.problem, ERR_FORBIDDEN,
                           "This needs an admin key for all tenants (*); this key is for one.");
    return problem_set(&c->op.problem, ERR_FORBIDDEN, "the role %s does not allow this",
                       role_name(who->role));
}

static enum err api_key_of(struct call *c, struct str *ret)
{
    struct str bearer = STR_NONE;
    struct str plain = STR_NONE;
    enum err e = header_once(c, "Authorization", &bearer);
    if (e == ERR_OK)
        e = header_once(c, "X-API-Key", &plain);
    if (e != ERR_OK)
        return e;
    struct str scheme;
    struct str token;
    if (str_cut(bearer, ' ', &scheme, &token) && str_eq_nocase(scheme, STR("Bearer")))
        *ret = str_trim(token);
    else
        *ret = plain;
    if (ret->ptr == NULL)
        return problem_set(&c->op.problem, ERR_UNAUTHENTICATED,
                           "send Authorization: Bearer pawl_… or X-API-Key: pawl_…");
    return ERR_OK;
}

static enum err identify(struct call *c)
{
    struct str tenant = STR_NONE;
    struct str actor = STR_NONE;
    c->op.caller.peer = c->req->peer;
    enum err e = header_once(c, "X-Tenant-ID", &tenant);
    if (e == ERR_OK)
        e = header_once(c, "X-Actor", &actor);
    if (e != ERR_OK)
        return e;
    if (tenant.ptr != NULL && !str_is(tenant, "*") && !tenant_id_ok(tenant))
        return problem_set(
            &c->op.problem, ERR_BAD_REQUEST,
            "X-Tenant-ID must be up to %d letters, digits or _ - . :", TENANT_ID_MAX);
    if (actor.len > ACTOR_MAX || !printable(actor))
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "X-Actor must be printable and at most %d bytes", ACTOR_MAX);
    if (c->api->config.dev_listen != NULL)
        return dev_caller(c, tenant, actor);
    e = api_key_of(c, &c->key);
    if (e != ERR_OK)
        return e;
    struct auth_identity id;
    c->key_epoch = engine_auth_epoch(c->api->config.engine);
    e = engine_identify(c->api->config.engine, c->key, c->req->peer, &c->op.problem, &id);
    return e == ERR_OK ? key_caller(c, tenant, &id) : e;
}

bool call_key_holds(struct call *c)
{
    struct engine *engine = c->api->config.engine;
    uint64_t epoch = engine_auth_epoch(engine);
    if (c->key.ptr == NULL || epoch == c->key_epoch)
        return true;
    struct auth_identity id;
    struct problem ignored;
    problem_init(&ignored);
    enum err e = engine_identify(engine, c->key, STR_NONE, &ignored, &id);
    problem_release(&ignored);
    if (e == ERR_OK)
        c->key_epoch = epoch;
    return e != ERR_UNAUTHENTICATED;
}

enum err call_revoked(struct call *c)
{
    problem_clear(&c->op.problem);
    return problem_set(&c->op.problem, ERR_UNAUTHENTICATED,
                       "the API key was revoked while the request waited");
}

static enum err authorize(struct call *c)
{
    if ((c->route->flags & ROUTE_OPEN) != 0 || c->aside)
        return ERR_OK;
    enum err e = identify(c);
    if (e != ERR_OK)
        return e;
    if (!role_may(c->op.caller.role, c->op.caller.all_tenants, c->route->may))
        return forbidden(c);
    if ((c->route->flags & ROUTE_SERVER_KEY) != 0 && !c->op.caller.all_tenants)
        return problem_set(&c->op.problem, ERR_FORBIDDEN,
                           "This needs a key for all tenants (*); this key is for one.");
    bool all_tenants = str_is(c->op.caller.tenant, "*");
    if (all_tenants && c->route->may != MAY_WORK && (c->route->flags & ROUTE_NO_TENANT) == 0 &&
        c->route->prepare != prepare_get_job)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "this key serves all tenants: name one with X-Tenant-ID");
    return ERR_OK;
}

/* --- the media type --- */

static enum err check_media_type(struct call *c)
{
    struct str type = http_header(c->req, "Content-Type", NULL);
    if (c->req->body.len == 0)
        return ERR_OK;
    if (type.ptr == NULL && c->api->config.dev_listen == NULL)
        return ERR_OK;
    if (type.ptr == NULL) /* a browser asks before it sends JSON from another site, but not this */
        return problem_set(&c->op.problem, ERR_MEDIA_TYPE,
                           "With --dev a body needs the header Content-Type: application/json.");
    struct str essence;
    struct str parameters;
    (void)str_cut(type, ';', &essence, &parameters);
    essence = str_trim(essence);
    bool json =
        str_eq_nocase(essence, STR("application/json")) ||
        (essence.len > 17 && str_eq_nocase((struct str){essence.ptr, 12}, STR("application/")) &&
         str_ends_with(essence, STR("+json")));
    parameters = str_trim(parameters);
    bool charset_ok = parameters.len == 0 || str_eq_nocase(parameters, STR("charset=utf-8")) ||
                      str_eq_nocase(parameters, STR("charset=\"utf-8\""));
    if (json && charset_ok)
        return ERR_OK;
    return problem_set(&c->op.problem, ERR_MEDIA_TYPE, "the body is \"%.*s\"",
                       (int)MIN(type.len, (size_t)100), type.ptr);
}

/* --- answers --- */

/* The same list from the next page on: every other parameter stays. */
static struct str next_link(struct call *c)
{
    struct buf link;
    buf_init(&link, 4 * KIB);
    buf_put_char(&link, '<');
    buf_put(&link, c->req->path);
    buf_put_char(&link, '?');
    struct str rest = c->req->query;
    while (rest.len > 0) {
        struct str part;
        (void)str_cut(rest, '&', &part, &rest);
        if (part.len > 0 && !str_starts_with(part, STR("cursor="))) {
            buf_put(&link, part);
            buf_put_char(&link, '&');
        }
    }
    /* Cursors are made of letters that need no encoding. */
    buf_printf(&link, "cursor=%s>; rel=\"next\"", c->op.answer.next_cursor);
    return arena_take(&c->req->arena, &link);
}

/* Where what was asked for will be: below the path that was asked, under the number that it got.
 * Its room was taken before the change was made. */
static struct str place_to_ask(struct call *c)
{
    int64_t seq = c->op.answer.update_seq;
    if (seq == 0)
        return STR_NONE;
    int n = snprintf(c->place, PLACE_ROOM(c->req->path), "%.*s/%lld", STR_ARG(c->req->path),
                     (long long)seq);
    return (struct str){c->place, (size_t)n};
}

/* The answer is the path of a file that was made for this request alone. */
static void send_file(struct call *c)
{
    const char *path = c->op.answer.body.ptr;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    (void)unlink(path); /* it lives on until it is sent */
    if (fd < 0) {
        (void)problem_set(&c->op.problem, ERR_STORE_FAILED, "the copy cannot be read");
        send_problem(c, NULL);
        return;
    }
    struct http_reply reply;
    http_reply_init(&reply, 200, STR("application/vnd.sqlite3"), STR_NONE);
    reply.file_fd = fd;
    reply.route = str_of(c->route->pattern);
    http_send(c->req, &reply);
}

/* The client has the run as it is. */
static void send_not_modified(struct call *c, struct str etag)
{
    struct http_reply reply;
    http_reply_init(&reply, 304, STR(""), STR(""));
    reply.route = str_of(c->route->pattern);
    http_reply_add(&reply, "ETag", etag);
    http_send(c->req, &reply);
}

static void send_answer(struct call *c)
{
    struct op *op = &c->op;
    bool reads_run = op->err == ERR_OK && c->route->use_case == &UC_GET_RUN;
    struct str etag = op->err == ERR_OK && op->answer.run_version > 0
                          ? call_etag(c, op->answer.run_version)
                          : STR_NONE;
    if (reads_run && call_has_version(c, op->answer.run_version)) {
        send_not_modified(c, etag);
        return;
    }
    if (op->err == ERR_OK && (c->route->flags & ROUTE_FILE) != 0) {
        send_file(c);
        return;
    }
    if (op->err != ERR_OK) {
        send_problem(c, NULL);
        return;
    }
    struct http_reply reply;
    http_reply_init(&reply, op->answer.status, STR("application/json"), buf_str(&op->answer.body));
    reply.route = str_of(c->route->pattern);
    if (op->answer.replayed || op->answer.already_decided)
        http_reply_add(&reply, "Idempotent-Replayed", STR("true"));
    if (etag.len > 0)
        http_reply_add(&reply, "ETag", etag);
    if (op->answer.next_cursor[0] != '\0')
        http_reply_add(&reply, "Link", next_link(c));
    if (op->answer.status == 202 && (c->route->flags & ROUTE_ASKS) != 0)
        http_reply_add(&reply, "Location", place_to_ask(c));
    http_send(c->req, &reply);
}

/* --- hand-outs --- */

static bool caller_is_there(const struct op *op)
{
    struct call *c = op->owner;
    return http_is_connected(c->req) && call_key_holds(c);
}

static void answer_unsent(void *user)
{
    struct call *c = user;
    engine_give_back(c->api->config.engine, &c->op);
}

/* Jobs for a client that has gone, or whose key has, are given back, and it is not told of them. */
static void op_done(struct op *op)
{
    struct call *c = op->owner;
    bool revoked = op->wait_ms > 0 && !call_key_holds(c);
    bool hands_out = op->err == ERR_OK && op->answer.handed.len > 0;
    bool lost = op->abandoned || (hands_out && (revoked || !http_is_connected(c->req)));
    if (lost)
        engine_give_back(c->api->config.engine, op);
    if (op->abandoned) {
        if (op->err == ERR_OK && (c->route->flags & ROUTE_FILE) != 0)
            (void)unlink(op->answer.body.ptr);
    } else if (revoked) { /* a change that it made while the key held stays */
        op->err = call_revoked(c);
        send_answer(c);
    } else if (lost) {
        http_hang_up(c->req);
    } else {
        c->req->unsent = hands_out ? answer_unsent : NULL;
        send_answer(c);
    }
    http_request_drop(c->req);
}

/* The store has the op and goes on using its memory, so nothing of it may be touched here. */
static void op_timed_out(struct op *op)
{
    struct call *c = op->owner;
    struct problem p;
    problem_init(&p);
    if (op->idem.key.len > 0)
        (void)problem_set(&p, ERR_IDEM_IN_FLIGHT,
                          "the change is still being decided: ask again with the same key");
    else
        (void)problem_set(&p, ERR_STORE_BUSY,
                          "the store takes too long: whether the change was made is not known yet");
    http_send_problem(c->req, &p, str_of(c->route->pattern), NULL);
    problem_release(&p);
}

/* --- the path --- */

/* A parameter that nobody reads is a mistake that its sender should hear of. */
static enum err check_query(struct call *c)
{
    static const char *const NONE[] = {NULL};
    if ((c->route->flags & (ROUTE_QUERY | ROUTE_WAITS | ROUTE_OPEN)) != 0)
        return ERR_OK;
    return http_query_only(c->req, NONE, &c->op.problem);
}

static enum err read_wait(struct call *c)
{
    if ((c->route->flags & ROUTE_WAITS) == 0)
        return ERR_OK;
    static const char *const KNOWN[] = {"wait_ms", NULL};
    if ((c->route->flags & ROUTE_ASKS) != 0) {
        c->op.wait_ms = ASK_WAIT_MS_DEFAULT;
        c->place = call_alloc(c, PLACE_ROOM(c->req->path));
        if (c->place == NULL)
            return c->op.problem.err;
    }
    enum err e = http_query_only(c->req, KNOWN, &c->op.problem);
    if (e == ERR_OK)
        e = call_query_int(c, "wait_ms", 0, RUN_WAIT_MS_MAX, &c->op.wait_ms);
    return e;
}

/* The `endpoint` of admissions, where several routes share a use case. */
static const char *endpoint_of(const struct route *r)
{
    if (r->prepare == prepare_start_run_flat)
        return "flat_start";
    return r->prepare == prepare_retry_run ? "retry" : NULL;
}

/* It has been read. */
static void submit(struct call *c, enum err e)
{
    if (e == ERR_OK) {
        engine_submit(c->api->config.engine, &c->op);
        return;
    }
    send_problem(c, NULL);
    http_request_drop(c->req);
}

static void through_engine(struct call *c)
{
    struct op *op = &c->op;
    op->use_case = c->route->use_case;
    op->endpoint = endpoint_of(c->route);
    op->bytes = sizeof(*c) + c->req->body.len;
    op->done = op_done;
    bool takes_long = (c->route->flags & ROUTE_LONG) != 0;
    op->timed_out = takes_long ? NULL : op_timed_out;
    op->shows_now = (c->route->flags & ROUTE_SHOWS_NOW) != 0;
    op->owner = c;
    op->is_there = caller_is_there;
    op->submitted_ns = c->req->begun_ns;
    if (read_wait(c) != ERR_OK) {
        send_problem(c, NULL);
        return;
    }
    http_request_hold(c->req); /* until op_done() */
    call_read(c, submit);
}

static void handle(struct api *api, struct http_request *req, bool aside)
{
    struct call *c = arena_alloc(&req->arena, sizeof(*c));
    if (c == NULL) {
        struct problem p;
        problem_init(&p);
        (void)problem_set(&p, ERR_NO_MEMORY, "no memory for the request");
        http_send_problem(req, &p, STR_NONE, NULL);
        problem_release(&p);
        return;
    }
    c->api = api;
    c->req = req;
    c->aside = aside;
    op_init(&c->op, NULL);
    req->user = c;
    req->cleanup = call_cleanup;
    char allow[64] = "";
    enum err e = check_origin(c);
    if (e == ERR_OK)
        e = find_route(c, allow, sizeof(allow));
    if (e == ERR_OK)
        e = authorize(c);
    if (e == ERR_OK)
        e = check_media_type(c);
    if (e == ERR_OK)
        e = check_query(c);
    if (e != ERR_OK) {
        send_problem(c, allow[0] != '\0' ? arena_str(&req->arena, str_of(allow)).ptr : NULL);
    } else if (c->route->direct != NULL) {
        c->route->direct(c);
    } else if ((c->route->flags & ROUTE_STREAM) != 0 && call_wants_stream(c)) {
        call_stream(c);
    } else {
        through_engine(c);
    }
}

void api_handle(void *ctx, struct http_request *req)
{
    handle(ctx, req, false);
}

void api_handle_aside(void *ctx, struct http_request *req)
{
    handle(ctx, req, true);
}
