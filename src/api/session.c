/* Routes about the caller: who it is and what it may do. */
#include "api/call.h"
#include "api/routes.h"

/* Only what is allowed to this caller, in the order of domain/role.h. */
static void add_actions(struct json_out *o, const struct caller *who)
{
    static const struct {
        unsigned action;
        const char *name;
    } ACTIONS[] = {
        {MAY_READ, "read"},     {MAY_RUN, "run"},     {MAY_WORK, "work"},
        {MAY_DECIDE, "decide"}, {MAY_ADMIN, "admin"}, {MAY_RULE_SERVER, "rule_server"},
    };
    json_open(o, "may", '[');
    for (size_t i = 0; i < ARRAY_LEN(ACTIONS); i++) {
        if (role_may(who->role, who->all_tenants, ACTIONS[i].action))
            json_add_text(o, NULL, str_of(ACTIONS[i].name));
    }
    json_close(o, ']');
}

static void add_server(struct call *c, struct json_out *o)
{
    const struct engine *engine = c->api->config.engine;
    struct engine_outbox outbox;
    engine_outbox(c->api->config.engine, &outbox);
    json_open(o, "server", '{');
    json_add_text(o, "version", STR(PAWL_VERSION));
    json_add_text(o, "store", str_of(engine_store_name(engine)));
    json_add_text(o, "gate", str_of(engine_gate_name(engine)));
    json_add_text_or_null(o, "bus", str_of(outbox.bus));
    json_add_bool(o, "dev", c->api->config.dev_listen != NULL);
    json_close(o, '}');
}

static void direct_me(struct call *c)
{
    const struct caller *who = &c->op.caller;
    struct json_out o = json_out_to(&c->op.answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "actor", who->actor);
    json_add_text(&o, "role", str_of(role_name(who->role)));
    json_add_text_or_null(&o, "tenant", str_is(who->tenant, "*") ? STR_NONE : who->tenant);
    json_add_bool(&o, "all_tenants", who->all_tenants);
    add_actions(&o, who);
    add_server(c, &o);
    json_close(&o, '}');
    if (buf_ok(&c->op.answer.body)) {
        call_send_json(c, 200, buf_str(&c->op.answer.body));
        return;
    }
    (void)call_no_memory(c);
    call_send_problem(c);
}

const struct route SESSION_ROUTES[] = {
    {"GET", "/api/v1/me", MAY_READ, ROUTE_ANY_TENANT, .direct = direct_me},
    {.method = NULL},
};
