#include "client.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "transport.h"

static const char default_url[] = "http://127.0.0.1:7295";

const char *pawl_version(void)
{
    return PAWL_VERSION;
}

static const char *setting(const char *given, const char *variable)
{
    const char *text = given ? given : getenv(variable);
    return text && *text ? text : NULL;
}

/* Headers are texts of one line. */
static bool set_header(json_t *headers, const char *name, const char *prefix, const char *value)
{
    if (!value)
        return true;
    for (const char *c = value; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            return false;
    char *text = format("%s%s", prefix, value);
    int set = json_object_set_new(headers, name, text ? json_string(text) : NULL);
    free(text);
    return set == 0;
}

static bool set_headers(json_t *headers, const struct pawl_client_options *options)
{
    return set_header(headers, "Accept", "", "application/json") &&
           set_header(headers, "User-Agent", "pawl-c/", PAWL_VERSION) &&
           set_header(headers, "Authorization", "Bearer ",
                      setting(options->api_key, "PAWL_API_KEY")) &&
           set_header(headers, "X-Tenant-ID", "", setting(options->tenant, "PAWL_TENANT")) &&
           set_header(headers, "X-Actor", "", setting(options->actor, "PAWL_ACTOR"));
}

/* The transport of a URL without the slashes at its end. */
static enum pawl_err make_transport(struct pawl_client *client, const char *url,
                                    struct pawl_error *error)
{
    if ((strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) ||
        strpbrk(url, " \t\r\n"))
        return error_set(error, PAWL_ERR_BAD_ARGUMENT, "\"%s\" is not a valid URL", url);
    char *base = format("%s", url);
    for (size_t size = base ? strlen(base) : 0; size && base[size - 1] == '/'; size--)
        base[size - 1] = 0;
    client->transport = base ? transport_new(base) : NULL;
    free(base);
    if (!client->transport)
        return error_no_memory(error);
    client->ports = transport_ports(client->transport);
    return PAWL_OK;
}

enum pawl_err pawl_client_new(const struct pawl_client_options *options,
                              struct pawl_client **ret_client, struct pawl_error *error)
{
    static const struct pawl_client_options none;
    static const struct pawl_retry retry = PAWL_RETRY_DEFAULT;
    static const struct pawl_budget budget = PAWL_BUDGET_DEFAULT;
    options = options ? options : &none;
    struct pawl_client *client = calloc(1, sizeof *client);
    if (!client)
        return error_no_memory(error);
    client->users = 1;
    client->retry = options->retry ? *options->retry : retry;
    client->budget = options->budget ? *options->budget : budget;
    client->headers = json_object();
    pthread_mutex_init(&client->lock, NULL);
    const char *url = setting(options->url, "PAWL_URL");
    enum pawl_err result = make_transport(client, url ? url : default_url, error);
    if (result == PAWL_OK && !set_headers(client->headers, options))
        result = error_set(error, PAWL_ERR_BAD_ARGUMENT,
                           "API key, tenant or actor is not a text of one line in UTF-8");
    if (result == PAWL_OK)
        *ret_client = client;
    else
        pawl_client_free(client);
    return result;
}

struct pawl_client *client_share(struct pawl_client *client)
{
    pthread_mutex_lock(&client->lock);
    client->users++;
    pthread_mutex_unlock(&client->lock);
    return client;
}

void pawl_client_free(struct pawl_client *client)
{
    if (!client)
        return;
    pthread_mutex_lock(&client->lock);
    int left = --client->users;
    pthread_mutex_unlock(&client->lock);
    if (left > 0)
        return;
    if (client->transport)
        transport_free(client->transport);
    json_decref(client->headers);
    pthread_mutex_destroy(&client->lock);
    free(client);
}

struct call_rule client_rule(const struct pawl_client *client)
{
    return (struct call_rule){.retry = client->retry, .budgeted = true};
}

struct request client_request(const struct pawl_client *client, const char *method, char *path,
                              json_t *body)
{
    json_t *headers = json_copy(client->headers);
    if (body)
        json_object_set_new(headers, "Content-Type", json_string("application/json"));
    return (struct request){.method = method,
                            .path = path,
                            .query = json_object(),
                            .headers = headers,
                            .body = body,
                            .timeout_ms = REQUEST_TIMEOUT_MS};
}

struct request job_request(const struct pawl_client *client, const char *job_id, const char *verb,
                           json_t *body)
{
    struct request request = client_request(client, "POST", NULL, body);
    struct buffer path = {0};
    buffer_text(&path, "/api/v1/jobs/");
    add_segment(&path, job_id);
    buffer_text(&path, "/");
    buffer_text(&path, verb);
    if (path.failed)
        buffer_free(&path);
    request.path = path.data;
    return request;
}

char *path_of(const char *part, ...)
{
    struct buffer path = {0};
    buffer_text(&path, "/api/v1");
    va_list parts;
    va_start(parts, part);
    for (bool is_segment = false; part;
         part = va_arg(parts, const char *), is_segment = !is_segment) {
        if (is_segment)
            add_segment(&path, part);
        else
            buffer_text(&path, part);
    }
    va_end(parts);
    if (path.failed)
        buffer_free(&path);
    return path.data;
}

bool run_is_over(const json_t *run)
{
    static const char *const over[] = {"succeeded", "failed", "denied", "cancelled", "timed_out"};
    const char *status = member_text(run, "status");
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        if (strcmp(over[i], status) == 0)
            return true;
    return false;
}

static bool take_token(struct pawl_client *client, const struct call_rule *rule)
{
    pthread_mutex_lock(&client->lock);
    bool allowed = !rule->budgeted || budget_allows_retry(&client->budget);
    pthread_mutex_unlock(&client->lock);
    return allowed;
}

static void earn_token(struct pawl_client *client, const struct call_rule *rule)
{
    pthread_mutex_lock(&client->lock);
    if (rule->budgeted)
        budget_success(&client->budget);
    pthread_mutex_unlock(&client->lock);
}

/* One attempt: the response of a success, or the error. */
static enum pawl_err attempt(struct pawl_client *client, const struct request *request,
                             struct response *ret_response, struct pawl_error *error)
{
    struct response response = {0};
    enum pawl_err result =
        client->ports.exchange(client->ports.at, request, NULL, &response, error);
    if (result != PAWL_OK)
        return result;
    if (response.status < 400) {
        *ret_response = response;
        return PAWL_OK;
    }
    result = response_error(&response, error);
    response_free(&response);
    return result;
}

/* Whether the call goes on after this error; the pause before the next attempt is then over. */
static bool waits(struct pawl_client *client, const struct call_rule *rule, struct backoff *backoff,
                  int attempts, double began_ms, const struct pawl_error *error)
{
    const struct ports *ports = &client->ports;
    const struct pawl_retry *retry = &rule->retry;
    if (!error->retryable || (retry->max_attempts > 0 && attempts >= retry->max_attempts) ||
        !take_token(client, rule))
        return false;
    double pause_ms = error->retry_after_s * 1000 + backoff_next(backoff, ports->random, ports->at);
    if (retry->deadline_ms > 0 &&
        ports->now_ms(ports->at) - began_ms + pause_ms > retry->deadline_ms)
        return false;
    if (rule->over && rule->over(rule->over_at))
        return false;
    ports->pause(ports->at, pause_ms);
    return true;
}

static enum pawl_err send_until_final(struct pawl_client *client, const struct request *request,
                                      const struct call_rule *rule, struct response *ret_response,
                                      struct pawl_error *error)
{
    struct backoff backoff = backoff_begin(&rule->retry);
    double began_ms = client->ports.now_ms(client->ports.at);
    for (int attempts = 1;; attempts++) {
        enum pawl_err result = attempt(client, request, ret_response, error);
        if (result == PAWL_OK)
            earn_token(client, rule);
        if (result == PAWL_OK || !waits(client, rule, &backoff, attempts, began_ms, error))
            return result;
    }
}

enum pawl_err client_perform(struct pawl_client *client, struct request *request,
                             const struct call_rule *rule, json_t **ret_value,
                             struct pawl_error *error)
{
    struct pawl_error own = {0};
    struct response response = {0};
    json_t *value = NULL;
    enum pawl_err result =
        request->path && request->headers && request->query ? PAWL_OK : error_no_memory(&own);
    if (result == PAWL_OK)
        result = send_until_final(client, request, rule, &response, &own);
    if (result == PAWL_OK)
        result = response_json(&response, &value, &own);
    response_free(&response);
    request_free(request);
    if (result != PAWL_OK)
        error_copy(error, &own);
    else if (ret_value)
        *ret_value = value;
    else
        json_decref(value);
    pawl_error_clear(&own);
    return result;
}
