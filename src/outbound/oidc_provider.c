/* An OpenID provider: endpoints, keys, and the exchange of a code. */
#include "outbound/oidc_provider.h"

#include "base/limits.h"
#include "base/log.h"
#include "bus/http_perform.h"
#include "domain/oidc/jws.h"
#include "outbound/form.h"

void oidc_provider_release(struct oidc_provider *provider)
{
    json_decref(provider->document);
    json_decref(provider->keys);
}

/* --- requests --- */

static enum err unavailable(struct problem *p, const char *what, const char *why)
{
    LOG(LOG_WARN, "the OpenID provider does not answer as it should", LOG_Z("asked for", what),
        LOG_Z("why", why));
    return problem_set(p, ERR_OIDC_UNAVAILABLE, "Cannot read the OpenID provider's %s: %s", what,
                       why);
}

/* What a provider says of a request that it refuses; never a secret. */
static void put_refusal(const struct http_call *call, const json_t *body, char out[static 160])
{
    const json_t *error = json_object_get(body, "error");
    (void)snprintf(out, 160, "it answered %d%s%.100s", call->status,
                   json_is_string(error) ? ": " : "",
                   json_is_string(error) ? json_string_value(error) : "");
}

/* The object that an answer holds; the caller owns it. */
static enum err read_answer(const struct http_call *call, const char *what, struct problem *p,
                            json_t **ret)
{
    json_t *body = NULL;
    struct problem ignored;
    char why[160];
    if (call->end != CALL_ANSWERED)
        return unavailable(p, what, call->detail);
    problem_init(&ignored);
    enum err e = json_parse(buf_str(&call->body), &ignored, &body);
    problem_release(&ignored);
    if (e == ERR_OK && call->status == 200 && json_is_object(body)) {
        *ret = body;
        return ERR_OK;
    }
    put_refusal(call, body, why);
    json_decref(body);
    return unavailable(p, what, call->status == 200 ? "it is not a JSON object" : why);
}

static enum err perform(const struct oidc_provider *provider,
                        const struct http_call_request *request, const char *what,
                        struct problem *p, json_t **ret)
{
    struct http_call *call = http_call_new(request);
    if (call == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    http_call_perform(call, provider->config->reach);
    enum err e = read_answer(call, what, p, ret);
    http_call_free(call);
    return e;
}

/* The person waits for all requests together. */
static int64_t time_left(const struct oidc_provider *provider)
{
    return MAX(provider->deadline_ms - env_mono_ms(provider->config->env), (int64_t)1);
}

static enum err get(const struct oidc_provider *provider, struct str url, const char *what,
                    struct problem *p, json_t **ret)
{
    const struct http_call_header accept = {STR("Accept"), STR("application/json")};
    struct http_call_request request = {
        .method = STR("GET"),
        .url = url,
        .headers = &accept,
        .header_count = 1,
        .timeout_ms = time_left(provider),
    };
    return perform(provider, &request, what, p, ret);
}

/* --- discovery --- */

static struct str endpoint_of(const struct oidc_provider *provider, const char *name)
{
    const json_t *value = json_object_get(provider->document, name);
    return json_is_string(value) ? json_str(value) : STR_NONE;
}

/* The document must be the issuer's own, and lead from https to https only. */
static const char *document_fault(const json_t *document, struct str issuer)
{
    static const char *const NEEDED[] = {"authorization_endpoint", "token_endpoint", "jwks_uri"};
    const json_t *named = json_object_get(document, "issuer");
    if (!json_is_string(named) || !str_eq(json_str(named), issuer))
        return "it names another issuer than --oidc-issuer";
    for (size_t i = 0; i < ARRAY_LEN(NEEDED); i++) {
        const json_t *url = json_object_get(document, NEEDED[i]);
        if (!json_is_string(url))
            return "it has no authorization_endpoint, token_endpoint or jwks_uri";
        if (str_starts_with(issuer, STR("https://")) &&
            !str_starts_with(json_str(url), STR("https://")))
            return "it names an endpoint without TLS";
    }
    return NULL;
}

static enum err discover(struct oidc_provider *provider, struct problem *p)
{
    struct str issuer = provider->config->issuer;
    int64_t now = env_mono_ms(provider->config->env);
    if (provider->document != NULL && now < provider->document_until_ms)
        return ERR_OK;
    struct buf url;
    json_t *document = NULL;
    buf_init(&url, HTTP_LINE_MAX);
    buf_printf(&url, "%.*s%s.well-known/openid-configuration", STR_ARG(issuer),
               str_ends_with(issuer, STR("/")) ? "" : "/");
    enum err e = buf_ok(&url) ? get(provider, buf_str(&url), "configuration", p, &document)
                              : problem_set(p, ERR_NO_MEMORY, "Out of memory");
    buf_release(&url);
    if (e != ERR_OK)
        return e;
    const char *fault = document_fault(document, issuer);
    if (fault != NULL) {
        json_decref(document);
        return unavailable(p, "configuration", fault);
    }
    json_decref(provider->document);
    provider->document = document;
    provider->document_until_ms = now + OIDC_KEPT_MS;
    return ERR_OK;
}

/* --- keys --- */

static enum err read_keys(struct oidc_provider *provider, struct problem *p)
{
    json_t *keys = NULL;
    int64_t now = env_mono_ms(provider->config->env);
    enum err e = get(provider, endpoint_of(provider, "jwks_uri"), "keys", p, &keys);
    if (e != ERR_OK)
        return e;
    json_decref(provider->keys);
    provider->keys = keys;
    provider->keys_until_ms = now + OIDC_KEPT_MS;
    provider->keys_rest_until_ms = now + OIDC_KEYS_REST_MS;
    return ERR_OK;
}

static enum err refuse_token(struct problem *p, const char *why)
{
    return problem_set(p, ERR_UNAUTHENTICATED, "The provider's ID token is refused: %s", why);
}

/* The claims of a token that one of the provider's keys has signed; the caller owns them. */
static enum err verify(struct oidc_provider *provider, struct str token, struct problem *p,
                       json_t **ret)
{
    const char *why = NULL;
    enum err e = ERR_OK;
    if (provider->keys == NULL || env_mono_ms(provider->config->env) >= provider->keys_until_ms)
        e = read_keys(provider, p);
    if (e != ERR_OK)
        return e;
    enum jws_verdict verdict = jws_verify(token, provider->keys, ret, &why);
    if (verdict == JWS_UNKNOWN_KEY &&
        env_mono_ms(provider->config->env) >= provider->keys_rest_until_ms) {
        e = read_keys(provider, p);
        if (e != ERR_OK)
            return e;
        verdict = jws_verify(token, provider->keys, ret, &why);
    }
    return verdict == JWS_OK ? ERR_OK : refuse_token(p, why);
}

/* --- the exchange --- */

/* HTTP Basic, as every provider must take it (RFC 6749, 2.3.1), unless it says that it takes the
 * secret in the form only. */
static bool secret_goes_into_form(const struct oidc_provider *provider)
{
    const json_t *methods =
        json_object_get(provider->document, "token_endpoint_auth_methods_supported");
    bool basic = methods == NULL;
    bool post = false;
    for (size_t i = 0; i < json_array_size(methods); i++) {
        const char *method = json_string_value(json_array_get(methods, i));
        basic |= method != NULL && strcmp(method, "client_secret_basic") == 0;
        post |= method != NULL && strcmp(method, "client_secret_post") == 0;
    }
    return post && !basic;
}

static void put_basic(struct buf *out, const struct oidc_config *config)
{
    struct buf pair;
    buf_init(&pair, OIDC_TOKEN_MAX);
    form_put_encoded(&pair, config->client_id);
    buf_put_char(&pair, ':');
    form_put_encoded(&pair, config->client_secret);
    buf_put(out, STR("Basic "));
    buf_put_base64(out, pair.ptr, pair.len);
    buf_release(&pair);
}

static void add_field(struct buf *form, const char *name, struct str value)
{
    buf_put_char(form, '&');
    form_put_field(form, name, value);
}

static void put_form(struct buf *form, const struct oidc_provider *provider,
                     const struct oidc_question *q, bool with_secret)
{
    const struct oidc_config *config = provider->config;
    buf_put(form, STR("grant_type=authorization_code"));
    add_field(form, "code", q->code);
    add_field(form, "redirect_uri", config->redirect_uri);
    add_field(form, "code_verifier", q->verifier);
    add_field(form, "client_id", config->client_id);
    if (with_secret)
        add_field(form, "client_secret", config->client_secret);
}

/* The provider's answer to the code; the caller owns it. */
static enum err exchange(const struct oidc_provider *provider, const struct oidc_question *q,
                         struct problem *p, json_t **ret)
{
    bool has_secret = provider->config->client_secret.ptr != NULL;
    bool in_form = has_secret && secret_goes_into_form(provider);
    struct buf form;
    struct buf basic;
    buf_init(&form, OIDC_TOKEN_MAX);
    buf_init(&basic, OIDC_TOKEN_MAX);
    put_form(&form, provider, q, in_form);
    if (has_secret && !in_form)
        put_basic(&basic, provider->config);
    const struct http_call_header headers[] = {
        {STR("Content-Type"), STR("application/x-www-form-urlencoded")},
        {STR("Accept"), STR("application/json")},
        {STR("Authorization"), buf_str(&basic)},
    };
    struct http_call_request request = {
        .method = STR("POST"),
        .url = endpoint_of(provider, "token_endpoint"),
        .headers = headers,
        .header_count = has_secret && !in_form ? 3 : 2,
        .body = buf_str(&form),
        .timeout_ms = time_left(provider),
    };
    enum err e = buf_ok(&form) && buf_ok(&basic) ? perform(provider, &request, "token", p, ret)
                                                 : problem_set(p, ERR_NO_MEMORY, "Out of memory");
    buf_release(&form);
    buf_release(&basic);
    return e;
}

static enum err find_person(struct oidc_provider *provider, struct oidc_question *q)
{
    const struct oidc_config *config = provider->config;
    json_t *answer = NULL;
    json_t *claims = NULL;
    enum err e = exchange(provider, q, &q->problem, &answer);
    if (e != ERR_OK)
        return e;
    const json_t *token = json_object_get(answer, "id_token");
    if (json_is_string(token))
        e = verify(provider, json_str(token), &q->problem, &claims);
    else
        e = refuse_token(&q->problem, "there is none; does the scope have \"openid\"?");
    struct oidc_expected expected = {config->issuer, config->client_id, q->nonce,
                                     env_now_ms(config->env) / 1000};
    if (e == ERR_OK)
        e = oidc_claims_check(claims, &expected, &q->problem);
    if (e == ERR_OK)
        e = oidc_claims_person(claims, &config->rules, &q->problem, &q->person);
    json_decref(claims);
    json_decref(answer);
    return e;
}

void oidc_provider_answer(struct oidc_provider *provider, struct oidc_question *q)
{
    provider->deadline_ms = env_mono_ms(provider->config->env) + OIDC_CALL_MS;
    q->err = discover(provider, &q->problem);
    if (q->err != ERR_OK)
        return;
    if (q->code.ptr != NULL) {
        q->err = find_person(provider, q);
        return;
    }
    buf_put(&q->endpoint, endpoint_of(provider, "authorization_endpoint"));
    if (!buf_ok(&q->endpoint))
        q->err = problem_set(&q->problem, ERR_NO_MEMORY, "Out of memory");
}
