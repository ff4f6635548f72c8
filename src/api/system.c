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
    /* The gate is a part of the store's transaction: they fail together. */
    json_open(&o, "gate", '{');
    json_add_text(&o, "status", e == ERR_OK ? STR("ok") : STR("failing"));
    json_add_text(&o, "kind", str_of(engine_gate_name(c->api->config.engine)));
    json_close(&o, '}');
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

static void direct_index(struct call *c)
{
    static const char PAGE[] =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\"><title>pawl</title>"
        "<style>body{font:16px/1.6 system-ui,sans-serif;max-width:40rem;margin:3rem auto;"
        "padding:0 1rem;color:#1b1f24}a{color:#0b57d0}code{background:#f0f2f5;padding:.1em .3em;"
        "border-radius:4px}@media(prefers-color-scheme:dark){body{background:#14171a;"
        "color:#e6e8ea}a{color:#8ab4f8}code{background:#24292e}}</style>"
        "<h1>pawl " PAWL_VERSION "</h1><p>A durable workflow control plane in which every retry is "
        "safe. This server speaks JSON over HTTP under <code>/api/v1</code>.</p><ul>"
        "<li><a href=\"console/\">/console/</a>: runs and approvals in the browser</li>"
        "<li><a href=\"/openapi.json\">/openapi.json</a>: the whole API</li>"
        "<li><a href=\"/readyz\">/readyz</a>: is it ready?</li>"
        "<li><a href=\"/healthz\">/healthz</a>: is it alive?</li>"
        "<li><a href=\"/metrics\">/metrics</a>: figures for Prometheus</li></ul>"
        "<p>On the command line: <code>pawl --help</code>.</p></html>";
    struct http_reply reply = call_reply(c, 200, STR("text/html; charset=utf-8"), str_of(PAGE));
    http_reply_add(&reply, "Content-Security-Policy",
                   STR("default-src 'none'; style-src 'unsafe-inline'"));
    http_send(c->req, &reply);
}

const struct route SYSTEM_ROUTES[] = {
    {"GET", "/healthz", 0, ROUTE_OPEN | ROUTE_ASIDE, .direct = direct_healthz},
    {"GET", "/readyz", 0, ROUTE_OPEN | ROUTE_ASIDE, .direct = direct_readyz},
    {"GET", "/openapi.json", 0, ROUTE_OPEN, .direct = direct_openapi},
    {"GET", "/", 0, ROUTE_OPEN, .direct = direct_index},
    {.method = NULL},
};
