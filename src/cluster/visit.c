/* Requests that other nodes answer. */
#include "cluster/visit.h"

#include "api/routes.h"
#include "base/json/read.h"
#include "base/log.h"
#include "cluster/calls/post.h"
#include "cluster/errand/errand.h"
#include "cluster/forward.h"
#include "runtime/auth.h"

enum {
    TRIES_MAX = 2,
    LOOK_AGAIN_MS = 1000,  /* how long a request waits for news of its shard's owner */
    LAST_ANSWER_MS = 2000, /* how long an answer of the old owner may still be on its way */
    FAILURE_LOG_MS = 1000, /* between lines: while a shard moves, every request to it fails */
};

struct visit {
    struct front *front;
    struct visit *prev, *next;
    struct forward forward;
    struct errand errand;
    struct node_claim claim;
    struct str tenant; /* whose shard it is for; ptr NULL: the shard does not change */
    const struct route *route;
    struct str key; /* or session; ptr NULL: none is needed */
    bool has_session;
    int64_t session_expires_at;
    struct str session; /* of the process it was sent to */
    int tries;
    bool under_way;
    bool sends_jobs; /* the client is being sent what its claim got */
    bool unknown;    /* a node may have acted on it */
    bool revoked;
    bool rests;         /* before it asks the next shard */
    bool ends_wait;     /* of a claim: the server stops */
    int64_t lost_at_ms; /* when its node lost the shard; 0: it has it */
    uint64_t view;      /* while it is not under way: when it waits for the next */
    int64_t until_ms;   /* and how long */
};

static void over(struct forward *forward, enum forward_end end);
static void try_now(struct visit *v);

static void set_under_way(struct visit *v, bool under_way)
{
    assert(v->under_way != under_way);
    v->under_way = under_way;
    v->front->waiting = under_way ? v->front->waiting - 1 : v->front->waiting + 1;
}

/* --- the list --- */

static void join(struct visit *v)
{
    struct front *f = v->front;
    f->waiting++; /* until it is under way */
    v->next = f->visits;
    if (f->visits != NULL)
        f->visits->prev = v;
    f->visits = v;
    http_request_hold(v->forward.req); /* until leave() */
}

/* What shards have given to a claim that is not answered with it. */
static void give_back(struct visit *v)
{
    if (v->errand.claim.count > 0)
        post_give_back(v->front, &v->claim.caller, errand_jobs(&v->errand));
}

static void leave(struct visit *v)
{
    v->front->waiting -= !v->under_way;
    *(v->prev != NULL ? &v->prev->next : &v->front->visits) = v->next;
    if (v->next != NULL)
        v->next->prev = v->prev;
    if (!v->sends_jobs) {
        give_back(v);
        errand_end(&v->errand);
    }
    http_request_drop(v->forward.req);
}

/* --- answers of our own --- */

static void answer(struct visit *v, enum err e, const char *detail)
{
    struct problem p;
    problem_init(&p);
    (void)problem_set(&p, e, "%s", detail);
    http_send_problem(v->forward.req, &p, str_of(v->route->pattern), NULL);
    problem_release(&p);
    leave(v);
}

static void jobs_unsent(void *user)
{
    give_back(user);
}

static void jobs_over(void *user)
{
    struct visit *v = user;
    errand_end(&v->errand);
}

/* Of all shards. */
static void answer_with_jobs(struct visit *v)
{
    struct http_request *req = v->forward.req;
    struct http_reply reply;
    if (!http_is_connected(req)) {
        http_hang_up(req);
        leave(v);
        return;
    }
    struct str jobs = errand_jobs(&v->errand);
    if (jobs.ptr == NULL) {
        answer(v, ERR_NO_MEMORY, "No memory for the answer");
        return;
    }
    http_reply_init(&reply, 200, STR("application/json"), jobs);
    reply.route = str_of(v->route->pattern);
    v->sends_jobs = true;
    req->user = v;
    req->unsent = jobs_unsent;
    req->cleanup = jobs_over;
    http_send(req, &reply);
    leave(v);
}

static void end_claim(struct visit *v)
{
    if (errand_has_answer(&v->errand))
        answer_with_jobs(v);
    else
        answer(v, ERR_SHARD_UNAVAILABLE, "No node serves any shard right now. Retry.");
}

/* Its owner, whom the claim has left, gives the jobs back that it may have got. */
static void answer_without_jobs(struct visit *v)
{
    struct http_reply reply;
    http_reply_init(&reply, 200, STR("application/json"), STR("{\"jobs\":[]}"));
    reply.route = str_of(v->route->pattern);
    http_send(v->forward.req, &reply);
    leave(v);
}

/* To the next shard of an errand. */
static void go_on(struct visit *v)
{
    struct errand_step step;
    struct arena *arena = &v->forward.req->arena;
    int64_t now = env_mono_ms(v->front->config.env);
    if (!errand_next(&v->errand, arena, now, &step)) {
        if (v->errand.join == JOIN_CLAIM)
            end_claim(v);
        else
            answer(v, ERR_NO_MEMORY, "No memory for the request");
        return;
    }
    v->claim.shard = (unsigned)step.shard;
    v->forward.query = step.query;
    v->forward.body = step.body;
    v->tries = 0;
    try_now(v);
}

/* The loop must not turn around a claim that waits while no shard is there. */
static void go_on_later(struct visit *v)
{
    int64_t now = env_mono_ms(v->front->config.env);
    int64_t rest = errand_rest_ms(&v->errand, now);
    if (rest == 0) {
        go_on(v);
        return;
    }
    v->rests = true;
    v->until_ms = now + rest;
}

static void end_rest(struct visit *v)
{
    v->rests = false;
    if (http_is_connected(v->forward.req)) {
        go_on(v);
        return;
    }
    http_hang_up(v->forward.req);
    leave(v);
}

/* Never without its part. */
static void answer_without_shard(struct visit *v)
{
    char detail[128];
    bool reads = str_is(v->forward.req->method, "GET") || str_is(v->forward.req->method, "HEAD");
    (void)snprintf(detail, sizeof(detail), "No node serves shard %u right now%s. Retry.",
                   v->claim.shard, reads ? "" : "; shards before it may have done their part");
    answer(v, ERR_SHARD_UNAVAILABLE, detail);
}

static void give_up(struct visit *v)
{
    if (!v->revoked && v->errand.join == JOIN_CLAIM) {
        errand_shard_is_away(&v->errand);
        go_on_later(v); /* the other shards may have some */
    } else if (v->revoked)
        answer(v, ERR_UNAUTHENTICATED,
               v->has_session ? "The session ended while the request waited"
                              : "The API key was revoked while the request waited");
    else if (v->unknown)
        answer(v, ERR_STORE_FAILED,
               "The node that serves the tenant's shard did not answer; the outcome is unknown");
    else if (v->errand.join == JOIN_NONE)
        answer(v, ERR_SHARD_UNAVAILABLE, "No node serves the tenant's shard right now. Retry.");
    else
        answer_without_shard(v);
}

/* --- sending --- */

/* It has become ours meanwhile. */
static void serve_here(struct visit *v, struct api *api)
{
    struct http_request *req = v->forward.req;
    struct call *c = v->claim.identifies
                         ? api_begin(api, req)
                         : api_begin_for(api, req, v->claim.has_caller ? &v->claim.caller : NULL);
    if (c != NULL) {
        c->key = v->key;
        c->has_session = v->has_session;
        c->session_expires_at = v->session_expires_at;
        api_go_on(api, c);
    }
    leave(v);
}

/* Fills in where it is sent, and the token for that node. False when memory ran out. */
static bool address(struct visit *v, const struct front_owner *owner)
{
    struct front *f = v->front;
    struct arena *arena = &v->forward.req->arena;
    const struct front_cluster *cluster = &f->config.cluster;
    v->forward.url = arena_str(arena, owner->url).ptr;
    v->session = arena_str(arena, owner->session);
    struct http_request *req = v->forward.req;
    struct node_message message = {
        .method = v->forward.method.ptr != NULL ? v->forward.method : req->method,
        .path = req->path,
        .query = v->forward.query.ptr != NULL ? v->forward.query : req->query,
        .body = v->forward.body.ptr != NULL ? v->forward.body : req->body,
    };
    v->forward.token = node_auth_sign(f->auth, &message, owner->session,
                                      cluster->now_ms(cluster->ctx), &v->claim, arena);
    if (owner->api == NULL)
        metric_add(f->config.metrics->forwarded, owner->node, STR_NONE, 1);
    v->lost_at_ms = 0;
    return v->forward.url != NULL && v->session.ptr != NULL && v->forward.token.ptr != NULL;
}

static void send_to(struct visit *v, const struct front_owner *owner)
{
    if (!address(v, owner)) {
        answer(v, ERR_NO_MEMORY, "No memory for the request");
        return;
    }
    set_under_way(v, true);
    forward_begin(&v->forward);
}

static struct front_owner owner_of(const struct visit *v)
{
    const struct front_config *config = &v->front->config;
    struct front_owner owner = config->cluster.owner_of(config->cluster.ctx, v->claim.shard);
    if (owner.api != NULL) { /* an errand asks this node as it asks the others */
        owner.url = config->url;
        owner.session = config->session;
    }
    return owner;
}

/* After a stream of one shard, that of the next. */
static enum forward_more more(struct forward *forward)
{
    struct visit *v = forward->owner;
    struct errand_step step;
    int64_t now = env_mono_ms(v->front->config.env);
    if (v->revoked || !errand_next(&v->errand, &forward->req->arena, now, &step))
        return v->revoked ? FORWARD_BROKEN : FORWARD_END;
    v->claim.shard = (unsigned)step.shard;
    struct front_owner owner = owner_of(v);
    return owner.url.ptr != NULL && address(v, &owner) ? FORWARD_NEXT : FORWARD_BROKEN;
}

static void try_now(struct visit *v)
{
    const struct front_cluster *cluster = &v->front->config.cluster;
    if (v->tenant.ptr != NULL) /* it may have been moved meanwhile */
        v->claim.shard = (unsigned)cluster->shard_of(cluster->ctx, v->tenant);
    struct front_owner owner = owner_of(v);
    v->tries++;
    if (v->tries > 1 && !http_is_connected(v->forward.req)) {
        http_hang_up(v->forward.req);
        leave(v);
    } else if (owner.api != NULL && v->errand.join == JOIN_NONE) {
        serve_here(v, owner.api);
    } else if (owner.url.ptr != NULL) {
        send_to(v, &owner);
    } else {
        give_up(v);
    }
}

/* --- may it be sent again? --- */

/* With a key in its body. Only asked when a node is gone. */
static bool has_body_key(const struct visit *v)
{
    const char *name = route_body_key(v->route);
    struct json *body = NULL;
    struct problem ignored;
    if (name == NULL)
        return false;
    problem_init(&ignored);
    bool has = json_read(v->forward.req->body, &ignored, &body) == ERR_OK &&
               json_is(json_member(body, str_of(name)), JSON_KIND_TEXT);
    json_free(body);
    problem_release(&ignored);
    return has;
}

static bool reads(const struct http_request *req)
{
    return str_is(req->method, "GET") || str_is(req->method, "HEAD");
}

static bool is_repeatable(const struct http_request *req)
{
    return reads(req) || errand_has_key(req);
}

static void log_failure(const struct visit *v)
{
    struct front *f = v->front;
    int64_t now = env_mono_ms(f->config.env);
    f->failures_unlogged++;
    if (now < f->failure_log_at_ms)
        return;
    LOG(LOG_WARN, "a forwarded request was not answered", LOG_Z("url", v->forward.url),
        LOG_Z("error", forward_error(&v->forward)), LOG_N("since_last_line", f->failures_unlogged));
    f->failures_unlogged = 0;
    f->failure_log_at_ms = now + FAILURE_LOG_MS;
}

static void count_failure(const struct visit *v, enum forward_end end)
{
    const char *reason = end == FORWARD_UNKNOWN         ? "no_answer"
                         : v->forward.reason[0] != '\0' ? "not_taken"
                                                        : "not_reached";
    metric_add(v->front->config.metrics->forward_failures, str_of(reason), STR_NONE, 1);
}

static void over(struct forward *forward, enum forward_end end)
{
    struct visit *v = forward->owner;
    const struct front_cluster *cluster = &v->front->config.cluster;
    set_under_way(v, false);
    if (end == FORWARD_ANSWERED) {
        leave(v);
        return;
    }
    if (end == FORWARD_SKIPPED) {
        go_on_later(v);
        return;
    }
    if (end == FORWARD_UNKNOWN && v->ends_wait) {
        answer_without_jobs(v);
        return;
    }
    count_failure(v, end);
    log_failure(v);
    bool again = end == FORWARD_NOT_TAKEN || forward->repeatable || has_body_key(v);
    v->unknown |= end == FORWARD_UNKNOWN && !reads(forward->req);
    if (v->revoked || !again || v->tries == TRIES_MAX) {
        give_up(v);
        return;
    }
    v->view = cluster->view(cluster->ctx);
    v->until_ms = env_mono_ms(v->front->config.env) + LOOK_AGAIN_MS;
    cluster->refresh(cluster->ctx);
}

static bool passes(struct forward *forward, struct http_reply *reply)
{
    struct visit *v = forward->owner;
    int64_t jobs_before = v->errand.claim.count;
    bool is_answer = errand_is_answer(&v->errand, forward->req, reply, &forward->piece);
    bool has_jobs = is_answer || v->errand.claim.count > jobs_before;
    if (has_jobs && v->errand.join == JOIN_CLAIM)
        v->front->turn = v->claim.shard + 1;
    return is_answer;
}

/* The client has left within an answer that hands out jobs. */
static void lost(struct forward *forward, struct str body)
{
    const struct visit *v = forward->owner;
    post_give_back(v->front, &v->claim.caller, body);
}

/* A session begins and ends where the secret of sessions is kept, with what the browser sent. */
static bool needs_credentials(const struct call *c)
{
    return c->key.ptr != NULL &&
           (str_starts_with(str_of(c->route->pattern), STR("/api/v1/sessions")) ||
            str_is(str_of(c->route->pattern), "/api/v1/me"));
}

static struct node_claim claim_of(const struct call *c, size_t shard)
{
    bool identifies = needs_credentials(c);
    return (struct node_claim){
        .shard = (unsigned)shard,
        .identifies = identifies,
        .has_caller = !identifies && (c->route->flags & ROUTE_OPEN) == 0,
        .caller = c->op.caller,
    };
}

/* With a key the same jobs are there for a client that asks again. */
static bool gives_back(const struct call *c)
{
    return (c->route->flags & ROUTE_HANDS_OUT) != 0 && !errand_has_key(c->req);
}

/* NULL: the request has been answered. */
static struct visit *new_visit(struct front *f, struct call *c, size_t shard)
{
    struct http_request *req = c->req;
    struct visit *v = call_alloc(c, sizeof(*v));
    if (v == NULL) {
        call_send_problem(c);
        return NULL;
    }
    v->front = f;
    v->route = c->route;
    v->claim = claim_of(c, shard);
    v->key = c->key;
    v->has_session = c->has_session;
    v->session_expires_at = c->session_expires_at;
    v->forward = (struct forward){
        .client = f->client,
        .req = req,
        .route = str_of(c->route->pattern),
        .repeatable = is_repeatable(req),
        .takes_long = (c->route->flags & ROUTE_LONG) != 0,
        .keeps_credentials = !v->claim.has_caller,
        .lost = gives_back(c) ? lost : NULL,
        .over = over,
        .owner = v,
    };
    return v;
}

void visit_begin(struct front *f, struct call *c, size_t shard, struct str tenant)
{
    struct visit *v = new_visit(f, c, shard);
    if (v == NULL)
        return;
    v->tenant = tenant;
    api_let_go(c);
    join(v);
    try_now(v);
}

void visit_all(struct front *f, struct call *c)
{
    struct visit *v = new_visit(f, c, 0);
    int64_t now = env_mono_ms(f->config.env);
    if (v == NULL)
        return;
    if (!errand_begin(&v->errand, c, &f->config.cluster, f->turn, now)) {
        errand_end(&v->errand);
        (void)call_no_memory(c);
        call_send_problem(c);
        return;
    }
    v->forward.passes = passes;
    v->forward.collects = errand_collects(&v->errand);
    if (v->errand.join == JOIN_CHAIN && !str_is(c->req->method, "HEAD"))
        v->forward.more = more;
    if (v->forward.collects && str_is(c->req->method, "HEAD"))
        v->forward.method = STR("GET"); /* the length of the answer needs the answers */
    api_let_go(c);
    join(v);
    go_on(v);
}

/* --- while they are under way --- */

/* The owner has changed. One that handed the shard over has answered everything before; one that
 * was paused or cut off may never answer. */
static void check_owner(struct visit *v, int64_t now)
{
    struct front_owner owner = owner_of(v);
    bool lost = owner.url.ptr == NULL || !str_eq(owner.session, v->session);
    if (!lost)
        v->lost_at_ms = 0;
    else if (v->lost_at_ms == 0)
        v->lost_at_ms = now;
    else if (now >= v->lost_at_ms + LAST_ANSWER_MS)
        forward_cancel(&v->forward);
}

static bool key_holds(const struct visit *v)
{
    const struct api_auth *auth = v->front->config.auth;
    struct auth_identity id;
    struct problem ignored;
    if (v->key.ptr == NULL || auth == NULL)
        return true;
    if (v->has_session && env_now_ms(v->front->config.env) >= v->session_expires_at)
        return false;
    problem_init(&ignored);
    enum err e = v->has_session ? auth->identify_session(auth->ctx, v->key, &ignored, &id)
                                : auth->identify(auth->ctx, v->key, STR_NONE, &ignored, &id);
    problem_release(&ignored);
    return e != ERR_UNAUTHENTICATED;
}

/* Signs out, or revokes a key: it may be the one that it was asked with. */
static bool ends_key(const struct visit *v)
{
    return v->route->scope == OF_FIRST && strcmp(v->route->method, "DELETE") == 0;
}

static void check_key(struct visit *v)
{
    if (v->revoked || ends_key(v) || key_holds(v))
        return;
    v->revoked = v->forward.ends_well = true;
    if (v->under_way)
        forward_cancel(&v->forward);
    else
        give_up(v);
}

static void check_waiting(struct visit *v, int64_t now)
{
    if (v->rests && now >= v->until_ms)
        end_rest(v);
    else if (!v->rests && (v->front->view > v->view || now >= v->until_ms))
        try_now(v);
}

void visits_poll(struct front *f)
{
    const struct front_cluster *cluster = &f->config.cluster;
    const struct api_auth *auth = f->config.auth;
    int64_t now = env_mono_ms(f->config.env);
    uint64_t view = cluster->view(cluster->ctx);
    uint64_t epoch = auth != NULL ? auth->epoch(auth->ctx) : 0;
    bool moved = view != f->view;
    bool checks_keys = epoch != f->epoch || now >= f->next_pulse_ms;
    f->view = view;
    f->epoch = epoch;
    if (checks_keys)
        f->next_pulse_ms = now + HTTP_STREAM_PULSE_MS;
    if (!moved && !checks_keys && f->waiting == 0)
        return;
    for (struct visit *v = f->visits, *next; v != NULL; v = next) {
        next = v->next;
        if (moved && v->under_way)
            check_owner(v, now);
        if (checks_keys && (v->under_way || v->rests))
            check_key(v);
        else if (!v->under_way)
            check_waiting(v, now);
    }
}

int visits_timeout_ms(const struct front *f)
{
    int64_t until = INT64_MAX;
    for (const struct visit *v = f->visits; v != NULL && f->waiting > 0; v = v->next) {
        if (!v->under_way)
            until = MIN(until, v->until_ms);
    }
    if (f->visits != NULL)
        until = MIN(until, f->next_pulse_ms);
    if (until == INT64_MAX)
        return -1;
    return (int)MAX(until - env_mono_ms(f->config.env), (int64_t)0);
}

/* With a key the claim may be repeated, and must get the same jobs then. */
static bool is_claim_that_waits(const struct visit *v)
{
    return v->route->join == JOIN_CLAIM && v->errand.join == JOIN_NONE && v->under_way &&
           !errand_has_key(v->forward.req) && forward_is_waiting(&v->forward);
}

void visits_end_waits(struct front *f)
{
    for (struct visit *v = f->visits; v != NULL; v = v->next) {
        bool streams = v->route->stream != NULL && v->under_way;
        errand_wait_is_over(&v->errand);
        v->ends_wait = is_claim_that_waits(v);
        v->forward.ends_well |= streams;
        if (streams || v->ends_wait)
            forward_cancel(&v->forward);
    }
}
