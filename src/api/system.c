/* Routes about the server itself: health, readiness, the API's description. */
#include "api/call.h"
#include "api/openapi.h"
#include "api/routes.h"

static void direct_healthz(struct call *c)
{
    call_send_json(c, 200, STR("{\"status\":\"ok\",\"version\":\"" PAWL_VERSION "\"}"));
}

/* A server whose bus is down takes all work and keeps the events: it is ready, and reports the
 * bus's state. */
static void add_bus(struct call *c, struct json_out *o)
{
    struct engine_outbox outbox;
    engine_outbox(c->api->config.engine, &outbox);
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
    const struct engine *engine = c->api->config.engine;
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
    enum err e = engine_ready(c->api->config.engine, p);
    struct json_out o = json_out_to(&c->op.answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "status", e == ERR_OK ? STR("ready") : STR("not_ready"));
    json_open(&o, "dependencies", '{');
    json_open(&o, "store", '{');
    json_add_text(&o, "status", e == ERR_OK ? STR("ok") : STR("failing"));
    json_add_text(&o, "engine", str_of(engine_store_name(c->api->config.engine)));
    json_add_text(&o, "detail", str_of(p->detail));
    json_close(&o, '}');
    add_gate(c, &o, e == ERR_OK);
    add_bus(c, &o);
    json_close(&o, '}');
    json_close(&o, '}');
    struct http_reply reply = call_reply(c, e == ERR_OK ? 200 : 503, STR("application/json"),
                                         buf_str(&c->op.answer.body));
    if (e != ERR_OK)
        http_reply_add(&reply, "Retry-After", STR("1"));
    http_send(c->req, &reply);
}

static void direct_openapi(struct call *c)
{
    call_send_json(c, 200, (struct str){(const char *)OPENAPI_JSON, OPENAPI_JSON_LEN});
}

const struct route SYSTEM_ROUTES[] = {
    {"GET", "/healthz", 0, ROUTE_OPEN | ROUTE_ASIDE, .direct = direct_healthz},
    {"GET", "/readyz", 0, ROUTE_OPEN | ROUTE_ASIDE, .direct = direct_readyz},
    {"GET", "/openapi.json", 0, ROUTE_OPEN, .direct = direct_openapi},
    {.method = NULL},
};
