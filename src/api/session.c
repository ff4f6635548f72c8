/* Routes about the caller: who it is, what it may do, and how a person in a browser signs in and
 * out. */
#include "api/caller.h"
#include "api/cookie.h"
#include "api/params.h"
#include "api/routes.h"
#include "outbound/oidc.h"

/* --- who it is --- */

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

static void add_expiry(struct call *c, struct json_out *o)
{
    if (!c->has_session) {
        json_add_null(o, "session_expires_at");
        return;
    }
    json_add_name(o, "session_expires_at");
    buf_put_char(o->buf, '"');
    buf_put_time(o->buf, c->session_expires_at);
    buf_put_char(o->buf, '"');
}

/* With a header Set-Cookie unless `cookie` is empty. */
static void send_json(struct call *c, struct str cookie)
{
    struct buf *body = &c->op.answer.body;
    if (!buf_ok(body)) {
        (void)call_no_memory(c);
        call_send_problem(c);
        return;
    }
    struct http_reply reply = call_reply(c, 200, STR("application/json"), buf_str(body));
    if (cookie.len > 0)
        http_reply_add(&reply, "Set-Cookie", cookie);
    http_send(c->req, &reply);
}

static void put_me(struct call *c)
{
    const struct caller *who = &c->op.caller;
    struct json_out o = json_out_to(&c->op.answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "actor", who->actor);
    json_add_text(&o, "role", str_of(role_name(who->role)));
    json_add_text_or_null(&o, "tenant", str_is(who->tenant, "*") ? STR_NONE : who->tenant);
    json_add_bool(&o, "all_tenants", who->all_tenants);
    add_actions(&o, who);
    add_expiry(c, &o);
    add_server(c, &o);
    json_close(&o, '}');
}

static void direct_me(struct call *c)
{
    put_me(c);
    send_json(c, STR_NONE);
}

/* --- signing in --- */

/* What a page needs to know before anybody has signed in. */
static void direct_sign_in(struct call *c)
{
    const struct oidc *oidc = engine_oidc(c->api->config.engine);
    struct str issuer = oidc != NULL ? oidc_config_of(oidc)->issuer : STR_NONE;
    struct json_out o = json_out_to(&c->op.answer.body);
    json_open(&o, NULL, '{');
    json_add_bool(&o, "needed", c->api->config.dev_listen == NULL);
    json_add_text_or_null(&o, "oidc_issuer", issuer);
    json_close(&o, '}');
    send_json(c, STR_NONE);
}

static struct str session_cookie(struct call *c, struct str value, int64_t age_s)
{
    struct cookie cookie = {
        .name = SESSION_COOKIE, .value = value, .age_s = age_s, .secure = cookie_is_secure(c)};
    return cookie_text(c, &cookie);
}

struct sign_in_input {
    struct str key;
};

static const struct param SIGN_IN[] = {
    BODY("key", PARAM_TEXT, .required = true, .min = 1, .max = API_KEY_TEXT_MAX,
         INTO(struct sign_in_input, key)),
};

static enum err read_sign_in(struct call *c)
{
    if (c->api->config.dev_listen != NULL)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST, "With --dev nobody needs to sign in");
    if (c->req->body.len > BODY_ON_LOOP_MAX)
        return problem_set(&c->op.problem, ERR_BODY_TOO_LARGE, "An API key is much shorter");
    enum err e = caller_check_sign_in(c);
    if (e == ERR_OK && c->req->body.len > 0)
        e = json_read(c->req->body, &c->op.problem, &c->body);
    return e == ERR_OK ? params_read_body(c) : e;
}

static enum err begin_session(struct call *c, struct str *ret_cookie)
{
    const struct sign_in_input *in = c->input;
    struct auth_identity id;
    enum err e = caller_identify_key(c, in->key, &id);
    if (e != ERR_OK)
        return e;
    struct session session = {
        .kind = SESSION_OF_KEY,
        .key_id = id.key_id,
        .expires_at = env_now_ms(c->api->config.env) + SESSION_MS,
    };
    struct buf text;
    buf_init(&text, SESSION_TEXT_MAX);
    engine_begin_session(c->api->config.engine, &session, &text);
    *ret_cookie = buf_ok(&text) ? session_cookie(c, buf_str(&text), SESSION_MS / 1000) : STR_NONE;
    buf_release(&text);
    c->has_session = true;
    c->session_expires_at = session.expires_at;
    return ret_cookie->len > 0 ? ERR_OK : call_no_memory(c);
}

static void direct_begin_session(struct call *c)
{
    struct str cookie;
    enum err e = read_sign_in(c);
    if (e == ERR_OK)
        e = begin_session(c, &cookie);
    if (e != ERR_OK) {
        call_send_problem(c);
        return;
    }
    put_me(c);
    send_json(c, cookie);
}

/* --- signing out --- */

/* It ends at once; the answer comes when that is stored. */
static enum err prepare_end(struct call *c, void *input)
{
    struct end_session_input *in = input;
    struct session session;
    c->set_cookie = session_cookie(c, STR(""), 0);
    if (c->set_cookie.ptr == NULL)
        return call_no_memory(c);
    in->has_session = c->has_session && engine_end_session(c->api->config.engine, c->key, &session);
    if (in->has_session) {
        in->id = session.id;
        in->expires_at = session.expires_at;
    }
    return ERR_OK;
}

const struct route SESSION_ROUTES[] = {
    {"GET", "/api/v1/me", MAY_READ, ROUTE_ANY_TENANT, .direct = direct_me, .scope = OF_FIRST},
    {"GET", "/api/v1/sign-in", 0, ROUTE_OPEN, .direct = direct_sign_in, .scope = OF_FIRST},
    {"POST", "/api/v1/sessions", 0, ROUTE_OPEN, TAKES(struct sign_in_input, SIGN_IN),
     .direct = direct_begin_session, .scope = OF_FIRST},
    {"DELETE", "/api/v1/sessions", MAY_READ, ROUTE_ANY_TENANT, &UC_END_SESSION,
     .input_size = sizeof(struct end_session_input), .prepare = prepare_end, .scope = OF_FIRST},
    {.method = NULL},
};
