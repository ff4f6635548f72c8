/* In front of the shards: here, there, or at several of them. */
#include "cluster/front.h"

#include "api/call.h"
#include "base/json/read.h"
#include "base/json/write.h"
#include "base/log.h"
#include "cluster/calls/post.h"
#include "cluster/errand/errand.h"
#include "cluster/forward.h"
#include "cluster/visit.h"
#include "core/txn/render.h"
#include "domain/tenant.h"

/* --- life --- */

struct front *front_new(const struct front_config *config)
{
    struct front *f = calloc(1, sizeof(*f));
    if (f == NULL)
        return NULL;
    f->config = *config;
    assert(config->session.len <= NODE_SESSION_MAX && config->url.len <= NODE_URL_LEN_MAX);
    memcpy(f->session, config->session.ptr, config->session.len);
    memcpy(f->url, config->url.ptr, config->url.len);
    f->config.session = str_of(f->session);
    f->config.url = str_of(f->url);
    f->auth = node_auth_new(config->secret, config->session);
    f->client = node_client_new(&config->client);
    f->view = config->cluster.view(config->cluster.ctx);
    if (f->auth != NULL && f->client != NULL)
        return f;
    front_free(f);
    return NULL;
}

void front_free(struct front *f)
{
    if (f == NULL)
        return;
    assert(f->visits == NULL && f->posts == 0);
    node_client_free(f->client);
    node_auth_free(f->auth);
    free(f);
}

/* --- where a request belongs --- */

/* Whose shard it belongs to; ptr NULL: to no tenant's, or to all. */
static struct str tenant_of(const struct call *c)
{
    enum route_scope scope = c->route->scope;
    struct str tenant = scope == OF_NAMED ? c->params[0] : c->op.caller.tenant;
    bool of_none = scope == OF_FIRST || scope == OF_ALL || !tenant_id_ok(tenant);
    return of_none ? STR_NONE : tenant;
}

/* What belongs to no tenant, or to all, is in shard 0. */
static size_t shard_of(const struct front *f, struct str tenant)
{
    const struct front_cluster *cluster = &f->config.cluster;
    return tenant.ptr != NULL ? cluster->shard_of(cluster->ctx, tenant) : 0;
}

/* --- requests of clients --- */

static void take(struct front *f, struct http_request *req)
{
    const struct front_cluster *cluster = &f->config.cluster;
    struct call *c = api_begin(f->config.node_api, req);
    if (c == NULL)
        return;
    if (c->route->scope == OF_NODE) {
        api_go_on(f->config.node_api, c);
        return;
    }
    if (errand_join_of(c, cluster) != JOIN_NONE) {
        if (api_may_forward(c))
            visit_all(f, c);
        return;
    }
    struct str tenant = tenant_of(c);
    size_t shard = shard_of(f, tenant);
    struct front_owner owner = cluster->owner_of(cluster->ctx, shard);
    if (owner.api != NULL)
        api_go_on(owner.api, c);
    else if (api_may_forward(c))
        visit_begin(f, c, shard, tenant);
}

/* --- uses of keys: each node sees some, and the owner of shard 0 stores them --- */

#define USES_PATH "/node/key-uses" /* for nodes only */

enum { USES_EVERY_MS = 1000, USES_AT_ONCE = 64 };

struct sent_uses {
    struct front *front;
    size_t count;
    struct key_use uses[USES_AT_ONCE];
};

/* What did not arrive is sent again. */
static void uses_over(void *ctx, int status)
{
    struct sent_uses *sent = ctx;
    const struct api_auth *auth = sent->front->config.auth;
    if (status != 200)
        auth->note_uses(auth->ctx, sent->uses, sent->count);
    free(sent);
}

static void put_uses(const struct sent_uses *sent, struct buf *out)
{
    struct json_out o = json_out_to(out);
    json_open(&o, NULL, '{');
    json_open(&o, "uses", '[');
    for (size_t i = 0; i < sent->count; i++) {
        json_open(&o, NULL, '{');
        json_add_uuid(&o, "id", sent->uses[i].id);
        json_add_int(&o, "at_ms", sent->uses[i].at_ms);
        json_close(&o, '}');
    }
    json_close(&o, ']');
    json_close(&o, '}');
}

static void send_uses(struct front *f)
{
    const struct api_auth *auth = f->config.auth;
    int64_t now = env_mono_ms(f->config.env);
    if (auth == NULL || now < f->next_uses_ms)
        return;
    f->next_uses_ms = now + USES_EVERY_MS;
    struct sent_uses *sent = calloc(1, sizeof(*sent));
    if (sent == NULL)
        return;
    sent->front = f;
    sent->count = auth->take_uses(auth->ctx, sent->uses, USES_AT_ONCE);
    if (sent->count == 0) {
        free(sent);
        return;
    }
    struct buf body;
    buf_init(&body, JSON_WRITTEN_MAX);
    put_uses(sent, &body);
    post_send(f, 0, NULL, STR(USES_PATH), buf_str(&body), uses_over, sent);
    buf_release(&body);
}

static void take_uses(const struct front *f, struct http_request *req)
{
    const struct api_auth *auth = f->config.auth;
    struct json *body = NULL;
    struct problem ignored;
    struct http_reply reply;
    problem_init(&ignored);
    if (auth != NULL && json_read(req->body, &ignored, &body) == ERR_OK) {
        const struct json *uses = json_member(body, STR("uses"));
        for (size_t i = 0; i < json_length(uses); i++) {
            const struct json *shown = json_element(uses, i);
            struct key_use use;
            if (uuid_parse(json_text_of(json_member(shown, STR("id"))), &use.id) &&
                json_whole_of(json_member(shown, STR("at_ms")), &use.at_ms))
                auth->note_uses(auth->ctx, &use, 1);
        }
    }
    json_free(body);
    problem_release(&ignored);
    http_reply_init(&reply, 200, STR("application/json"), STR("{}"));
    http_send(req, &reply);
}

/* --- requests of other nodes --- */

/* The sender may not know yet that the tenant was moved. This node does: it has taken the shard
 * after that. */
static bool is_at_home(const struct front *f, const struct call *c, size_t shard)
{
    bool of_one = errand_join_of(c, &f->config.cluster) == JOIN_NONE;
    struct str tenant = of_one ? tenant_of(c) : STR_NONE;
    return tenant.ptr == NULL || shard_of(f, tenant) == shard;
}

static void refuse_moved(struct call *c)
{
    struct problem p;
    problem_init(&p);
    (void)problem_set(&p, ERR_SHARD_UNAVAILABLE, "The tenant was moved to another shard");
    call_send_other_problem(c, &p);
    problem_release(&p);
}

static void refuse(struct http_request *req, enum err e, const char *reason, const char *detail)
{
    struct problem p;
    struct http_reply reply;
    problem_init(&p);
    (void)problem_set(&p, e, "%s", detail);
    http_problem_reply(req, &p, &reply);
    http_reply_add(&reply, NOT_TAKEN_HEADER, str_of(reason));
    http_send(req, &reply);
    problem_release(&p);
}

static void serve_forwarded(struct front *f, struct http_request *req,
                            const struct node_claim *claim)
{
    const struct front_cluster *cluster = &f->config.cluster;
    struct front_owner owner = {.api = NULL};
    if (claim->shard < cluster->shard_count)
        owner = cluster->owner_of(cluster->ctx, claim->shard);
    if (owner.api == NULL) {
        cluster->refresh(cluster->ctx);
        refuse(req, ERR_SHARD_UNAVAILABLE, "owner", "Another node serves this shard");
        return;
    }
    if (str_is(req->path, USES_PATH)) {
        take_uses(f, req);
        return;
    }
    struct call *c = claim->identifies
                         ? api_begin(owner.api, req)
                         : api_begin_for(owner.api, req, claim->has_caller ? &claim->caller : NULL);
    if (c == NULL)
        return;
    if (is_at_home(f, c, claim->shard))
        api_go_on(owner.api, c);
    else
        refuse_moved(c);
}

static void take_forwarded(struct front *f, struct http_request *req, struct str token)
{
    const struct front_cluster *cluster = &f->config.cluster;
    struct node_claim claim;
    enum node_verdict verdict =
        node_auth_check(f->auth, req, token, cluster->now_ms(cluster->ctx), &claim);
    if (verdict == NODE_BELIEVED) {
        req->of_node = true;
        req->trace_is_new = http_header(req, NEW_TRACE_HEADER, NULL).ptr != NULL;
        serve_forwarded(f, req, &claim);
        return;
    }
    LOG(LOG_WARN, "refused a forwarded request", LOG_S("peer", req->peer),
        LOG_Z("token", node_verdict_name(verdict)));
    refuse(req, ERR_UNAUTHENTICATED, node_verdict_name(verdict),
           "The header " FORWARDED_HEADER " is for nodes of this cluster");
}

void front_handle(void *ctx, struct http_request *req)
{
    struct front *f = ctx;
    struct str token = http_header(req, FORWARDED_HEADER, NULL);
    if (token.ptr != NULL)
        take_forwarded(f, req, token);
    else
        take(f, req);
}

/* --- the loop --- */

int front_event_fd(const struct front *f)
{
    return node_client_fd(f->client);
}

void front_poll(struct front *f, bool readable)
{
    if (readable)
        node_client_poll(f->client);
    visits_poll(f);
    send_uses(f);
}

int front_timeout_ms(const struct front *f)
{
    return visits_timeout_ms(f);
}

void front_drain(struct front *f)
{
    visits_end_waits(f);
}

bool front_idle(const struct front *f)
{
    return f->visits == NULL && f->posts == 0;
}
