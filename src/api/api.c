/* The path of every request: origin → route → caller → query → body → engine → answer. */
#include "api/api.h"

#include "api/answer.h"
#include "api/body.h"
#include "api/caller.h"
#include "api/metrics.h"
#include "api/params.h"
#include "api/routes.h"
#include "api/streams.h"
#include "api/waiting.h"

struct api *api_new(const struct api_config *config)
{
    struct api *api = calloc(1, sizeof(*api));
    if (api == NULL)
        return NULL;
    api->config = *config;
    api->metrics = metrics_maker_new(api);
    api->waiting = waiting_new();
    if (api->metrics != NULL && api->waiting != NULL)
        return api;
    api_free(api);
    return NULL;
}

void api_free(struct api *api)
{
    if (api == NULL)
        return;
    assert(api->streams == NULL && api->calls == NULL);
    metrics_maker_free(api->metrics);
    waiting_free(api->waiting);
    free(api);
}

void api_tick(struct api *api, int64_t mono_ms)
{
    if (api->config.engine != NULL)
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

bool api_idle(const struct api *api)
{
    return api->calls == NULL;
}

void api_cut_slow_clients(struct api *api)
{
    for (struct call *c = api->calls; c != NULL; c = c->next) {
        if (http_is_answered(c->req))
            http_cut(c->req);
    }
}

/* --- the route --- */

static enum err find_route(struct call *c, char allow[static ALLOW_MAX])
{
    struct str params[PARAMS_MAX];
    c->route = route_find(c->req->method, c->req->path, c->aside, params);
    if (c->route == NULL) {
        route_allow(c->req->path, c->aside, allow);
        if (allow[0] == '\0')
            return problem_set(&c->op.problem, ERR_NOT_FOUND, "There is nothing at this path");
        return problem_set(&c->op.problem, ERR_METHOD_NOT_ALLOWED, "Allowed here: %s", allow);
    }
    for (size_t i = 0; i < PARAMS_MAX; i++) {
        if (params[i].ptr != NULL && !http_decode(c->req, params[i], &c->params[i]))
            return problem_set(&c->op.problem, ERR_BAD_REQUEST, "The path is badly encoded");
    }
    return ERR_OK;
}

/* --- the media type --- */

static bool is_json(struct str type)
{
    struct str essence;
    struct str parameters;
    (void)str_cut(type, ';', &essence, &parameters);
    essence = str_trim(essence);
    bool json =
        str_eq_nocase(essence, STR("application/json")) ||
        (essence.len > 17 && str_eq_nocase((struct str){essence.ptr, 12}, STR("application/")) &&
         str_ends_with(essence, STR("+json")));
    parameters = str_trim(parameters);
    return json && (parameters.len == 0 || str_eq_nocase(parameters, STR("charset=utf-8")) ||
                    str_eq_nocase(parameters, STR("charset=\"utf-8\"")));
}

static enum err check_media_type(struct call *c)
{
    struct str type = http_header(c->req, "Content-Type", NULL);
    if (c->req->body.len == 0)
        return ERR_OK;
    bool may_be_absent = c->api->config.dev_listen == NULL && !c->has_session;
    if (type.ptr == NULL && may_be_absent)
        return ERR_OK;
    if (type.ptr == NULL) /* a browser asks before it sends JSON to another site, but not this */
        return problem_set(&c->op.problem, ERR_MEDIA_TYPE,
                           "%s a body needs the header Content-Type: application/json",
                           c->has_session ? "With a session" : "With --dev");
    if (is_json(type))
        return ERR_OK;
    return problem_set(&c->op.problem, ERR_MEDIA_TYPE,
                       "Send application/json in UTF-8, not \"%.*s\"",
                       (int)MIN(type.len, (size_t)100), type.ptr);
}

/* --- the engine --- */

/* The request has been read. */
static void submit(struct call *c, enum err e)
{
    if (e == ERR_OK && c->op.wait_ms > 0) {
        e = waiting_join(c->api->waiting, c->op.caller.tenant, &c->op.problem);
        c->waits = e == ERR_OK; /* until answer_done() */
    }
    if (e == ERR_OK) {
        engine_submit(c->api->config.engine, &c->op);
        return;
    }
    call_send_problem(c);
    http_request_drop(c->req);
}

static void through_engine(struct call *c)
{
    struct op *op = &c->op;
    op->use_case = c->route->use_case;
    op->endpoint = c->route->endpoint;
    op->bytes = sizeof(*c) + c->req->body.len;
    op->done = answer_done;
    bool takes_long = (c->route->flags & ROUTE_LONG) != 0;
    op->timed_out = takes_long ? NULL : answer_timed_out;
    op->shows_now = (c->route->flags & ROUTE_SHOWS_NOW) != 0;
    op->owner = c;
    op->is_there = answer_is_awaited;
    op->submitted_ns = c->req->begun_ns;
    if (answer_reserve(c) != ERR_OK) {
        call_send_problem(c);
        return;
    }
    http_request_hold(c->req); /* until answer_done() */
    c->req->disconnected = answer_disconnected;
    body_read(c, submit);
}

/* --- a request --- */

static void enlist(struct call *c, struct api *api)
{
    c->api = api;
    c->prev = NULL;
    c->next = api->calls;
    if (c->next != NULL)
        c->next->prev = c;
    api->calls = c;
}

static void strike_off(struct call *c)
{
    *(c->prev != NULL ? &c->prev->next : &c->api->calls) = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
}

/* With the request: the answer that is sent points into the op's buffers. */
static void call_cleanup(void *user)
{
    struct call *c = user;
    body_free(c);
    op_release(&c->op);
    metrics_text_drop(c->metrics_text);
    strike_off(c);
}

static enum err count_connection(struct call *c)
{
    struct str tenant = c->op.caller.tenant;
    if (tenant.len == 0 || http_count_for(c->req, tenant))
        return ERR_OK;
    return problem_set(&c->op.problem, ERR_OVERLOADED, "The tenant has too many connections");
}

/* What the caller may do, and what they have sent. */
static enum err check(struct call *c)
{
    enum err e = caller_authorize(c);
    if (e == ERR_OK)
        e = count_connection(c);
    if (e == ERR_OK)
        e = check_media_type(c);
    if (e == ERR_OK)
        e = params_read_query(c);
    return e;
}

void api_go_on(struct api *api, struct call *c)
{
    strike_off(c);
    enlist(c, api);
    if (check(c) != ERR_OK)
        call_send_problem(c);
    else if (c->route->direct != NULL)
        c->route->direct(c);
    else if (streams_wanted(c))
        streams_begin(c);
    else
        through_engine(c);
}

static void send_no_memory(struct http_request *req)
{
    struct problem p;
    problem_init(&p);
    (void)problem_set(&p, ERR_NO_MEMORY, "No memory for the request");
    http_send_problem(req, &p, STR_NONE, NULL);
    problem_release(&p);
}

static struct call *new_call(struct api *api, struct http_request *req, bool aside)
{
    struct call *c = arena_room(&req->arena, sizeof(*c));
    if (c == NULL) {
        send_no_memory(req);
        return NULL;
    }
    memset(c, 0, offsetof(struct call, op)); /* the op, most of it, is op_init()'s */
    enlist(c, api);                          /* until call_cleanup() */
    c->req = req;
    c->aside = aside;
    op_init(&c->op, NULL);
    req->user = c;
    req->cleanup = call_cleanup;
    return c;
}

/* NULL when it has been answered with the problem. */
static struct call *begun(struct call *c, enum err e, const char *allow)
{
    if (e == ERR_OK)
        return c;
    struct str route = c->route != NULL ? str_of(c->route->pattern) : STR_NONE;
    struct str copy = allow[0] != '\0' ? arena_str(&c->req->arena, str_of(allow)) : STR_NONE;
    http_send_problem(c->req, &c->op.problem, route, copy.ptr);
    return NULL;
}

static struct call *begin(struct api *api, struct http_request *req, bool aside)
{
    char allow[ALLOW_MAX] = "";
    struct call *c = new_call(api, req, aside);
    if (c == NULL)
        return NULL;
    enum err e = caller_check_origin(c);
    if (e == ERR_OK)
        e = find_route(c, allow);
    if (e == ERR_OK)
        e = caller_identify(c);
    return begun(c, e, allow);
}

struct call *api_begin(struct api *api, struct http_request *req)
{
    return begin(api, req, false);
}

struct call *api_begin_for(struct api *api, struct http_request *req, const struct caller *caller)
{
    char allow[ALLOW_MAX] = "";
    struct call *c = new_call(api, req, false);
    if (c == NULL)
        return NULL;
    if (caller != NULL)
        c->op.caller = *caller;
    return begun(c, find_route(c, allow), allow);
}

bool api_may_forward(struct call *c)
{
    if (!c->has_session)
        return true;
    enum err e = caller_authorize(c);
    if (e == ERR_OK)
        e = check_media_type(c);
    if (e != ERR_OK)
        call_send_problem(c);
    return e == ERR_OK;
}

void api_let_go(struct call *c)
{
    struct http_request *req = c->req;
    call_cleanup(c);
    req->user = NULL;
    req->cleanup = NULL;
}

static void handle(struct api *api, struct http_request *req, bool aside)
{
    struct call *c = begin(api, req, aside);
    if (c != NULL)
        api_go_on(api, c);
}

void api_handle(void *ctx, struct http_request *req)
{
    handle(ctx, req, false);
}

void api_handle_aside(void *ctx, struct http_request *req)
{
    handle(ctx, req, true);
}
