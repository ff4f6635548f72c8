/* The idempotency key, the body and the fingerprint of a request. */
#include "api/body.h"

#include "api/caller.h"
#include "api/params.h"
#include "api/routes.h"
#include "domain/idempotency.h"

/* --- the key --- */

/* The key in one header; empty when it is absent. */
static enum err key_in_header(struct call *c, const char *name, struct str *ret)
{
    size_t count;
    struct str value = http_header(c->req, name, &count);
    *ret = STR_NONE;
    if (count == 0)
        return ERR_OK;
    if (count > 1)
        return problem_set(&c->op.problem, ERR_IDEM_KEY_INVALID, "The header %s is sent twice",
                           name);
    return idem_key_parse(value, &c->req->arena, &c->op.problem, ret);
}

static enum err disagree(struct call *c)
{
    return problem_set(&c->op.problem, ERR_IDEM_KEY_INVALID,
                       "The request has two different idempotency keys");
}

static enum err read_key(struct call *c)
{
    struct str one;
    struct str two;
    enum err e = key_in_header(c, "Idempotency-Key", &one);
    if (e == ERR_OK)
        e = key_in_header(c, "X-Idempotency-Key", &two);
    if (e != ERR_OK)
        return e;
    if (one.ptr != NULL && two.ptr != NULL && !str_eq(one, two))
        return disagree(c);
    c->op.idem.key = one.ptr != NULL ? one : two;
    return ERR_OK;
}

/* "POST /api/v1/…" with the path decoded, so that %2D and - are one route. */
static enum err set_route_text(struct call *c)
{
    struct str path;
    if (!http_decode(c->req, c->req->path, &path))
        return problem_set(&c->op.problem, ERR_BAD_REQUEST, "The path is badly encoded");
    size_t len = c->req->method.len + 1 + path.len;
    bool personal = (c->route->flags & ROUTE_PERSONAL) != 0;
    struct str who = personal ? c->op.caller.actor : STR("");
    if (len > ROUTE_MAX)
        return problem_set(&c->op.problem, ERR_URI_TOO_LONG,
                           "The path is too long for an idempotency key");
    char *text = arena_room(&c->req->arena, len + 1 + who.len + 1);
    if (text == NULL)
        return call_no_memory(c);
    memcpy(text, c->req->method.ptr, c->req->method.len);
    text[c->req->method.len] = ' ';
    memcpy(text + c->req->method.len + 1, path.ptr, path.len);
    text[len] = ' ';
    if (who.len > 0)
        memcpy(text + len + 1, who.ptr, who.len);
    c->op.idem.route = (struct str){text, len};
    c->fingerprinted = (struct str){text, personal ? len + 1 + who.len : len};
    c->op.idem.raw_hash = engine_raw_hash(c->api->config.engine, c->fingerprinted, c->req->body);
    return ERR_OK;
}

/* After the body was read: then it is known which members make no difference. */
static enum err set_fingerprint(struct call *c, const char *body_key)
{
    struct idem_claim *idem = &c->op.idem;
    struct str left_out = str_of(body_key);
    enum err e = idem_fingerprint(c->fingerprinted, c->body, left_out, true, &c->op.problem,
                                  &idem->fingerprint);
    idem->has_spelled_out = c->defaults > 0;
    if (e == ERR_OK && idem->has_spelled_out)
        e = idem_fingerprint(c->fingerprinted, c->body, left_out, false, &c->op.problem,
                             &idem->spelled_out);
    idem->has_fingerprint = e == ERR_OK;
    return e;
}

/* A key in the body, where the route allows one; it must be the header's if both are there. */
static enum err read_body_key(struct call *c, const char *name)
{
    const struct json *given = json_member(c->body, str_of(name));
    if (given == NULL || json_is(given, JSON_KIND_NULL))
        return ERR_OK;
    if (!json_is(given, JSON_KIND_TEXT))
        return problem_set(&c->op.problem, ERR_IDEM_KEY_INVALID, "%s: must be text", name);
    struct str key = json_text_of(given);
    enum err e = idem_key_check(key, &c->op.problem);
    if (e != ERR_OK)
        return e;
    if (c->op.idem.key.len > 0)
        return str_eq(c->op.idem.key, key) ? ERR_OK : disagree(c);
    c->op.idem.key = key;
    return set_route_text(c);
}

/* --- the body --- */

static enum err read_params(struct call *c)
{
    enum err e = params_read_path(c);
    if (e == ERR_OK)
        e = params_read_headers(c);
    if (e == ERR_OK && (c->route->flags & ROUTE_DOCUMENT) == 0)
        e = params_read_body(c);
    if (e == ERR_OK && c->route->prepare != NULL)
        e = c->route->prepare(c, c->input);
    return e;
}

/* All that takes longer for a larger body, except its hash. */
static enum err read_body(struct call *c, bool changes)
{
    enum err e = ERR_OK;
    if (changes && c->req->body.len > 0)
        e = json_read(c->req->body, &c->op.problem, &c->body);
    const char *body_key = route_body_key(c->route);
    if (e == ERR_OK && body_key != NULL)
        e = read_body_key(c, body_key);
    if (e == ERR_OK)
        e = read_params(c);
    return e == ERR_OK && c->op.idem.key.len > 0 ? set_fingerprint(c, body_key) : e;
}

/* Does the engine know the answer? A request with ROUTE_ASKS may have to wait again, for which its
 * input is needed. */
static bool is_replay(struct call *c)
{
    bool asks = (c->route->flags & ROUTE_ASKS) != 0;
    return c->op.idem.key.len > 0 && !asks && engine_replay(c->api->config.engine, &c->op);
}

/* A request that the engine has seen before is not parsed. */
static enum err read_here(struct call *c, bool changes)
{
    enum err e = c->op.idem.key.len > 0 ? set_route_text(c) : ERR_OK;
    if (e != ERR_OK || is_replay(c))
        return e;
    return read_body(c, changes);
}

/* --- large bodies, on the body thread --- */

struct large_body {
    struct body_task task;
    struct call *call;
    body_read_fn *then;
    bool has_key; /* in a header */
    enum err err;
};

/* Until this is done the loop does not touch the call: its connection is suspended. */
static void read_large(struct body_task *task)
{
    struct large_body *large = task->owner;
    struct call *c = large->call;
    large->err = large->has_key ? set_route_text(c) : ERR_OK;
    if (large->err == ERR_OK)
        large->err = read_body(c, true);
}

/* On the loop again. Here, too, a request with the bytes of an earlier one is a replay of that,
 * even if it would be refused today. */
static void large_is_read(struct body_task *task)
{
    struct large_body *large = task->owner;
    struct call *c = large->call;
    if (!caller_key_holds(c))
        large->then(c, caller_revoked(c));
    else if (large->has_key && is_replay(c))
        large->then(c, ERR_OK);
    else
        large->then(c, large->err);
}

static enum err read_on_thread(struct call *c, body_read_fn *then)
{
    struct large_body *large = call_alloc(c, sizeof(*large));
    if (large == NULL)
        return c->op.problem.err;
    large->task = (struct body_task){.run = read_large,
                                     .done = large_is_read,
                                     .tenant = c->op.caller.tenant,
                                     .bytes = c->op.bytes,
                                     .owner = large};
    large->call = c;
    large->then = then;
    large->has_key = c->op.idem.key.len > 0;
    engine_read_body(c->api->config.engine, &c->op, &large->task);
    return ERR_OK;
}

void body_read(struct call *c, body_read_fn *then)
{
    bool changes = c->route->use_case->write != NULL && !str_is(c->req->method, "GET") &&
                   !str_is(c->req->method, "HEAD");
    enum err e = changes ? read_key(c) : ERR_OK;
    bool large = e == ERR_OK && changes && c->req->body.len > BODY_ON_LOOP_MAX;
    if (large)
        e = read_on_thread(c, then);
    else if (e == ERR_OK)
        e = read_here(c, changes);
    if (!large || e != ERR_OK)
        then(c, e);
}

/* --- the end --- */

struct leftovers {
    struct body_task task;
    struct definition *definition;
};

static void free_leftovers(struct body_task *task)
{
    struct leftovers *left = task->owner;
    definition_free(left->definition);
    free(left);
}

/* A large definition also takes long to free. */
void body_free(struct call *c)
{
    json_free(c->body);
    bool large = c->definition != NULL && c->req->body.len > BODY_ON_LOOP_MAX;
    struct leftovers *left = large ? calloc(1, sizeof(*left)) : NULL;
    if (left == NULL) {
        definition_free(c->definition);
        return;
    }
    *left = (struct leftovers){{.run = free_leftovers, .owner = left}, c->definition};
    engine_free_body(c->api->config.engine, &left->task);
}
