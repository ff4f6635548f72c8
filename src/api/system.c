/* Routes about the server itself: health, readiness, the cluster, the API's description. */
#include "api/call.h"
#include "api/node.h"
#include "api/openapi.h"
#include "api/routes.h"

static void direct_healthz(struct call *c)
{
    call_send_json(c, 200, STR("{\"status\":\"ok\",\"version\":\"" PAWL_VERSION "\"}"));
}

static enum err ready(const struct api_config *config, struct problem *p)
{
    return config->node != NULL ? config->node->ready(config->node->ctx, p)
                                : engine_ready(config->engine, p);
}

/* One that speaks for all: they have the same gate and the same bus. NULL: none is open. */
static struct engine *some_engine(const struct api_config *config)
{
    return config->node != NULL ? config->node->engine_at(config->node->ctx, 0) : config->engine;
}

/* Who owns what. */
static void add_shards(const struct api_config *config, struct json_out *o)
{
    struct api_cluster_shard shard;
    if (config->node == NULL)
        return;
    json_add_text(o, "node", str_of(config->node_name));
    json_open(o, "shards", '[');
    for (size_t i = 0; config->node->shard_at(config->node->ctx, i, &shard); i++) {
        json_open(o, NULL, '{');
        json_add_int(o, "shard", (int64_t)i);
        json_add_text_or_null(o, "owner", shard.owner);
        json_add_text(o, "state", str_of(shard.state));
        json_close(o, '}');
    }
    json_close(o, ']');
}

/* What waits in all shards of this node; the state is that of one which has trouble, if any. */
static struct engine_outbox whole_outbox(const struct api_config *config)
{
    struct engine_outbox all = {0};
    struct engine *engine = some_engine(config);
    for (size_t i = 0; engine != NULL; i++) {
        struct engine_outbox one = {0};
        engine_outbox(engine, &one);
        int64_t depth = all.depth + one.depth;
        if (i == 0 || strcmp(all.status, "ok") == 0)
            all = one;
        all.depth = depth;
        engine = config->node != NULL ? config->node->engine_at(config->node->ctx, i + 1) : NULL;
    }
    return all;
}

/* A server whose bus is down takes all work and keeps the events: it is ready, and reports the
 * bus's state. */
static void add_bus(struct call *c, struct json_out *o)
{
    struct engine_outbox outbox = whole_outbox(&c->api->config);
    if (outbox.bus == NULL)
        return;
    json_open(o, "bus", '{');
    json_add_text(o, "status", str_of(outbox.status));
    json_add_text(o, "kind", str_of(outbox.bus));
    json_add_text(o, "detail", str_of(outbox.detail));
    json_add_int(o, "waiting", outbox.depth);
    json_close(o, '}');
}

/* The store's gate is a part of its transaction: they fail together. Without another one, only the
 * starts of some tenants are refused. */
static void add_gate(struct call *c, struct json_out *o, bool store_ok)
{
    const struct engine *engine = some_engine(&c->api->config);
    struct engine_gate gate = {0};
    if (engine != NULL)
        engine_gate(engine, &gate);
    bool ok = gate.exists ? gate.ok : store_ok;
    json_open(o, "gate", '{');
    json_add_text(o, "status", ok ? STR("ok") : STR("failing"));
    json_add_text(o, "kind", engine != NULL ? str_of(engine_gate_name(engine)) : STR("store"));
    if (gate.exists)
        json_add_text(o, "detail", str_of(gate.detail));
    json_close(o, '}');
}

static void direct_readyz(struct call *c)
{
    struct problem *p = &c->op.problem;
    const struct engine *engine = some_engine(&c->api->config);
    enum err e = ready(&c->api->config, p);
    struct json_out o = json_out_to(&c->op.answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "status", e == ERR_OK ? STR("ready") : STR("not_ready"));
    json_open(&o, "dependencies", '{');
    json_open(&o, "store", '{');
    json_add_text(&o, "status", e == ERR_OK ? STR("ok") : STR("failing"));
    json_add_text(&o, "engine",
                  engine != NULL ? str_of(engine_store_name(engine)) : STR("PostgreSQL"));
    json_add_text(&o, "detail", str_of(p->detail));
    json_close(&o, '}');
    add_gate(c, &o, e == ERR_OK);
    add_bus(c, &o);
    json_close(&o, '}');
    add_shards(&c->api->config, &o);
    json_close(&o, '}');
    struct http_reply reply = call_reply(c, e == ERR_OK ? 200 : 503, STR("application/json"),
                                         buf_str(&c->op.answer.body));
    if (e != ERR_OK)
        http_reply_add(&reply, "Retry-After", STR("1"));
    http_send(c->req, &reply);
}

/* --- the cluster as this server sees it; without one it is a node of its own with one shard --- */

static void add_int_or_null(struct json_out *o, const char *name, int64_t value)
{
    if (value < 0)
        json_add_null(o, name);
    else
        json_add_int(o, name, value);
}

static void add_node(struct json_out *o, const struct api_cluster_node *n)
{
    json_open(o, NULL, '{');
    json_add_text(o, "name", n->name);
    json_add_text_or_null(o, "url", n->url);
    json_add_text(o, "state", str_of(n->state));
    add_int_or_null(o, "lease_ms", n->lease_ms);
    json_add_int(o, "shards", n->shards);
    json_close(o, '}');
}

static void add_moved(struct json_out *o, const struct api_node *node, size_t shard)
{
    struct str tenant;
    json_open(o, "tenants", '[');
    for (size_t i = 0; node != NULL && node->moved_at(node->ctx, shard, i, &tenant); i++)
        json_add_text(o, NULL, tenant);
    json_close(o, ']');
}

static void add_shard(struct json_out *o, const struct api_config *config, size_t number,
                      const struct api_cluster_shard *s)
{
    json_open(o, NULL, '{');
    json_add_int(o, "shard", (int64_t)number);
    json_add_text_or_null(o, "owner", s->owner);
    json_add_text(o, "state", str_of(s->state));
    add_int_or_null(o, "epoch", s->epoch);
    json_add_text_or_null(o, "database", s->database);
    add_moved(o, config->node, number);
    json_close(o, '}');
}

static bool node_at(const struct api_config *config, size_t i, struct api_cluster_node *ret)
{
    if (config->node != NULL)
        return config->node->node_at(config->node->ctx, i, ret);
    *ret = (struct api_cluster_node){
        .name = str_of(config->node_name), .state = "live", .lease_ms = -1, .shards = 1};
    return i == 0;
}

static bool shard_at(const struct api_config *config, size_t i, struct api_cluster_shard *ret)
{
    if (config->node != NULL)
        return config->node->shard_at(config->node->ctx, i, ret);
    *ret = (struct api_cluster_shard){
        .owner = str_of(config->node_name), .state = "serving", .epoch = -1};
    return i == 0;
}

static void direct_cluster(struct call *c)
{
    const struct api_config *config = &c->api->config;
    struct api_cluster_node node;
    struct api_cluster_shard shard;
    struct json_out o = json_out_to(&c->op.answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "node", str_of(config->node_name));
    json_open(&o, "nodes", '[');
    for (size_t i = 0; node_at(config, i, &node); i++)
        add_node(&o, &node);
    json_close(&o, ']');
    json_open(&o, "shards", '[');
    for (size_t i = 0; shard_at(config, i, &shard); i++)
        add_shard(&o, config, i, &shard);
    json_close(&o, ']');
    json_close(&o, '}');
    call_send_json(c, 200, buf_str(&c->op.answer.body));
}

static void direct_openapi(struct call *c)
{
    call_send_json(c, 200, (struct str){(const char *)OPENAPI_JSON, OPENAPI_JSON_LEN});
}

const struct route SYSTEM_ROUTES[] = {
    {"GET", "/healthz", 0, ROUTE_OPEN | ROUTE_ASIDE, .direct = direct_healthz, .scope = OF_NODE},
    {"GET", "/readyz", 0, ROUTE_OPEN | ROUTE_ASIDE, .direct = direct_readyz, .scope = OF_NODE},
    {"GET", "/api/v1/cluster", MAY_RULE_SERVER, ROUTE_NO_TENANT, .direct = direct_cluster,
     .scope = OF_NODE},
    {"GET", "/openapi.json", 0, ROUTE_OPEN, .direct = direct_openapi, .scope = OF_NODE},
    {.method = NULL},
};
