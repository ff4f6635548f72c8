/* Signing in at an OpenID provider: the way there, and the way back. */
#include "outbound/oidc.h"
#include "api/cookie.h"
#include "api/routes.h"
#include "domain/oidc/flow.h"

/* A request that waits for the provider. */
struct visit {
    struct oidc_question question;
    struct call *call;
    struct oidc_flow flow;
    struct oidc_words words;
};

struct login_input {
    struct str return_to;
};

struct callback_input {
    struct str code;
    struct str state;
    struct str error;
    struct str iss;
};

static struct oidc *provider_of(const struct call *c)
{
    return engine_oidc(c->api->config.engine);
}

/* --- answers --- */

/* What has gone wrong, for a person who sees it instead of a page. */
static struct str page_of(struct call *c, const struct problem *p)
{
    struct buf page;
    buf_init(&page, 4 * KIB);
    buf_put(&page,
            STR("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Sign-in failed "
                "· pawl</title><h1>Sign-in failed</h1><p>"));
    for (const char *at = p->detail; *at != '\0'; at++) {
        if (*at == '<' || *at == '>' || *at == '&')
            buf_printf(&page, "&#%d;", *at);
        else
            buf_put_char(&page, *at);
    }
    buf_put(&page, STR("</p><p><a href=\"../../console/\">Back to the console</a></p></html>"));
    return arena_take(&c->req->arena, &page);
}

static void send_failure(struct call *c, const struct problem *p)
{
    struct str accept = http_header_list(c->req, "Accept");
    bool is_browser = str_starts_with(accept, STR("text/html"));
    struct str page = is_browser ? page_of(c, p) : STR_NONE;
    if (page.ptr == NULL) {
        call_send_other_problem(c, p);
        return;
    }
    struct http_reply reply =
        call_reply(c, err_http_status(p->err), STR("text/html; charset=utf-8"), page);
    http_reply_add(&reply, "Content-Security-Policy", STR("default-src 'none'"));
    http_send(c->req, &reply);
}

static bool is_secure(const struct call *c)
{
    return str_starts_with(oidc_config_of(provider_of(c))->redirect_uri, STR("https://"));
}

/* --- asking the provider --- */

static struct visit *visit_new(struct call *c)
{
    struct visit *v = call_alloc(c, sizeof(*v));
    if (v == NULL)
        return NULL;
    oidc_question_init(&v->question);
    v->question.owner = v;
    v->call = c;
    return v;
}

static void visit_end(struct visit *v)
{
    oidc_question_release(&v->question);
    http_request_drop(v->call->req);
}

/* done() comes later, unless the provider is asked too much already. */
static void ask(struct visit *v, void (*done)(struct oidc_question *))
{
    v->question.done = done;
    http_request_hold(v->call->req); /* until visit_end() */
    if (oidc_submit(provider_of(v->call), &v->question))
        return;
    (void)problem_set(&v->call->op.problem, ERR_OVERLOADED, "Too many people are signing in");
    send_failure(v->call, &v->call->op.problem);
    visit_end(v);
}

/* --- the way there --- */

static void redirect_there(struct oidc_question *q)
{
    struct visit *v = q->owner;
    struct call *c = v->call;
    struct buf location;
    struct buf flow;
    if (q->err != ERR_OK) {
        send_failure(c, &q->problem);
        visit_end(v);
        return;
    }
    buf_init(&location, HTTP_LINE_MAX);
    buf_init(&flow, 1 * KIB);
    oidc_put_request(provider_of(c), buf_str(&q->endpoint), &v->words, &location);
    oidc_flow_put(&flow, &v->flow, engine_session_secret(c->api->config.engine));
    struct cookie cookie = {SIGN_IN_COOKIE, buf_str(&flow), OIDC_FLOW_MS / 1000, is_secure(c),
                            true};
    struct str text = buf_ok(&flow) ? cookie_text(c, &cookie) : STR_NONE;
    struct str to = arena_take(&c->req->arena, &location);
    buf_release(&flow);
    if (text.ptr == NULL || to.ptr == NULL) {
        (void)call_no_memory(c);
        send_failure(c, &c->op.problem);
    } else {
        struct http_reply reply = call_reply(c, 303, STR("text/plain"), STR("See the provider\n"));
        http_reply_add(&reply, "Location", to);
        http_reply_add(&reply, "Set-Cookie", text);
        http_send(c->req, &reply);
    }
    visit_end(v);
}

static enum err check_configured(struct call *c)
{
    if (provider_of(c) != NULL)
        return ERR_OK;
    return problem_set(&c->op.problem, ERR_NOT_FOUND,
                       "This server has no OpenID provider: see `pawl serve --oidc-issuer`");
}

static void direct_login(struct call *c)
{
    const struct login_input *in = c->input;
    enum err e = check_configured(c);
    if (e == ERR_OK && !oidc_return_ok(in->return_to))
        e = problem_set(&c->op.problem, ERR_BAD_REQUEST,
                        "return_to must be a place below /console/, such as runs");
    struct visit *v = e == ERR_OK ? visit_new(c) : NULL;
    if (v == NULL) {
        send_failure(c, &c->op.problem);
        return;
    }
    env_random(c->api->config.env, v->flow.id, sizeof(v->flow.id));
    v->flow.expires_at = env_now_ms(c->api->config.env) + OIDC_FLOW_MS;
    memcpy(v->flow.return_to, in->return_to.ptr, in->return_to.len);
    oidc_flow_words(&v->flow, engine_session_secret(c->api->config.engine), &v->words);
    ask(v, redirect_there);
}

/* --- the way back --- */

/* The public address without /api/v1/…, which the redirect URI ends with. */
static struct str public_url(const struct call *c)
{
    struct str uri = oidc_config_of(provider_of(c))->redirect_uri;
    uri.len -= strlen(OIDC_CALLBACK_PATH);
    return uri;
}

static struct str session_cookie(struct call *c, struct session *person)
{
    struct buf text;
    buf_init(&text, SESSION_TEXT_MAX);
    person->expires_at = env_now_ms(c->api->config.env) + OIDC_SESSION_MS;
    engine_begin_session(c->api->config.engine, person, &text);
    struct cookie cookie = {.name = SESSION_COOKIE,
                            .value = buf_str(&text),
                            .age_s = OIDC_SESSION_MS / 1000,
                            .secure = is_secure(c)};
    struct str out = buf_ok(&text) ? cookie_text(c, &cookie) : STR_NONE;
    buf_release(&text);
    return out;
}

static void redirect_back(struct oidc_question *q)
{
    struct visit *v = q->owner;
    struct call *c = v->call;
    if (q->err != ERR_OK) {
        send_failure(c, &q->problem);
        visit_end(v);
        return;
    }
    struct buf location;
    struct cookie over = {.name = SIGN_IN_COOKIE, .value = STR(""), .follows_links = true};
    buf_init(&location, HTTP_LINE_MAX);
    buf_printf(&location, "%.*s/console/%s", STR_ARG(public_url(c)), v->flow.return_to);
    struct str to = arena_take(&c->req->arena, &location);
    struct str session = session_cookie(c, &q->person);
    struct str forget = cookie_text(c, &over);
    if (to.ptr == NULL || session.ptr == NULL || forget.ptr == NULL) {
        (void)call_no_memory(c);
        send_failure(c, &c->op.problem);
    } else {
        struct http_reply reply = call_reply(c, 303, STR("text/plain"), STR("See the console\n"));
        http_reply_add(&reply, "Location", to);
        http_reply_add(&reply, "Set-Cookie", session);
        http_reply_add(&reply, "Set-Cookie", forget);
        http_send(c->req, &reply);
    }
    visit_end(v);
}

/* Is this the answer to a sign-in that this browser began? */
static enum err read_flow(struct call *c, struct str state, struct visit *v)
{
    struct str secret = engine_session_secret(c->api->config.engine);
    struct str text;
    enum err e = cookie_find(c, SIGN_IN_COOKIE, &text);
    if (e != ERR_OK)
        return e;
    if (!oidc_flow_read(text, secret, &v->flow) ||
        v->flow.expires_at <= env_now_ms(c->api->config.env))
        return problem_set(&c->op.problem, ERR_UNAUTHENTICATED,
                           "This sign-in was not begun in this browser, or took too long");
    oidc_flow_words(&v->flow, secret, &v->words);
    struct sha256 given = sha256_of(state);
    struct sha256 right = sha256_of(str_of(v->words.state));
    if (v->words.state[0] == '\0' || !sha256_eq(&given, &right))
        return problem_set(&c->op.problem, ERR_UNAUTHENTICATED,
                           "This answer belongs to another sign-in");
    return ERR_OK;
}

static enum err read_callback(struct call *c, const struct callback_input *in, struct visit *v)
{
    enum err e = read_flow(c, in->state, v);
    if (e != ERR_OK)
        return e;
    if (in->iss.ptr != NULL && !str_eq(in->iss, oidc_config_of(provider_of(c))->issuer))
        return problem_set(&c->op.problem, ERR_UNAUTHENTICATED,
                           "This answer is from another provider");
    if (in->error.len > 0)
        return problem_set(&c->op.problem, ERR_UNAUTHENTICATED,
                           "The provider did not sign you in: %.*s",
                           (int)MIN(in->error.len, (size_t)100), in->error.ptr);
    if (in->code.len == 0)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST, "The query parameter code is missing");
    v->question.code = in->code;
    v->question.verifier = str_of(v->words.verifier);
    v->question.nonce = str_of(v->words.nonce);
    return ERR_OK;
}

static void direct_callback(struct call *c)
{
    enum err e = check_configured(c);
    struct visit *v = e == ERR_OK ? visit_new(c) : NULL;
    if (v == NULL) {
        send_failure(c, &c->op.problem);
        return;
    }
    if (read_callback(c, c->input, v) == ERR_OK) {
        ask(v, redirect_back);
        return;
    }
    oidc_question_release(&v->question);
    send_failure(c, &c->op.problem);
}

static const struct param LOGIN[] = {
    QUERY("return_to", PARAM_TEXT, .max = OIDC_RETURN_MAX, .initial_text = "",
          INTO(struct login_input, return_to)),
};

static const struct param CALLBACK[] = {
    QUERY("code", PARAM_TEXT, .max = OIDC_CODE_MAX, INTO(struct callback_input, code)),
    QUERY("state", PARAM_TEXT, .max = OIDC_CODE_MAX, INTO(struct callback_input, state)),
    QUERY("error", PARAM_TEXT, .max = OIDC_CODE_MAX, INTO(struct callback_input, error)),
    QUERY("iss", PARAM_TEXT, .max = OIDC_CODE_MAX, INTO(struct callback_input, iss)),
};

const struct route OIDC_ROUTES[] = {
    {"GET", "/api/v1/oidc-login", 0, ROUTE_OPEN, TAKES(struct login_input, LOGIN),
     .direct = direct_login, .scope = OF_FIRST},
    {"GET", OIDC_CALLBACK_PATH, 0, ROUTE_OPEN, TAKES(struct callback_input, CALLBACK),
     .direct = direct_callback, .scope = OF_FIRST},
    {.method = NULL},
};
