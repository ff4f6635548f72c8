/* The operations of the API, each a row of a table, and how arguments become a request. */
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "error.h"

#define UPDATE_WAIT_MS 10000

enum operation_kind {
    READ,   /* arguments that are not in the path are the query */
    ASK,    /* a POST that changes nothing, and therefore has no key */
    CHANGE, /* has a key */
    BARE,   /* a change without a body */
    JOB,    /* a worker's call: the lease is its key */
};

struct operation {
    const char *name, *method, *path;
    enum operation_kind kind;
    const char *whole;  /* the argument that is the whole body */
    const char *member; /* of the answer: what the caller gets */
};

static const struct operation operations[] = {
    {"startRun", "POST", "/workflows/{workflow_id}/runs", CHANGE, NULL, NULL},
    {"listRuns", "GET", "/runs", READ, NULL, NULL},
    {"getRun", "GET", "/runs/{run_id}", READ, NULL, NULL},
    {"whyRun", "GET", "/runs/{run_id}/why", READ, NULL, NULL},
    {"listRunEvents", "GET", "/runs/{run_id}/events", READ, NULL, NULL},
    {"cancelRun", "POST", "/runs/{run_id}/cancel", CHANGE, NULL, NULL},
    {"pauseRun", "POST", "/runs/{run_id}/pause", CHANGE, NULL, NULL},
    {"resumeRun", "POST", "/runs/{run_id}/resume", CHANGE, NULL, NULL},
    {"retryRun", "POST", "/runs/{run_id}/retry", CHANGE, NULL, NULL},
    {"rerunRun", "POST", "/runs/{run_id}/rerun", CHANGE, NULL, NULL},
    {"signalRun", "POST", "/runs/{run_id}/signals", CHANGE, NULL, NULL},
    {"bulkRuns", "POST", "/runs:bulk", CHANGE, NULL, NULL},
    {"claimJobs", "POST", "/jobs/claim", JOB, NULL, "jobs"},
    {"claimJob", "POST", "/jobs/{job_id}/claim", JOB, NULL, NULL},
    {"getJob", "GET", "/jobs/{job_id}", READ, NULL, NULL},
    {"completeJob", "POST", "/jobs/{job_id}/complete", JOB, NULL, NULL},
    {"failJob", "POST", "/jobs/{job_id}/fail", JOB, NULL, NULL},
    {"heartbeatJob", "POST", "/jobs/{job_id}/heartbeat", JOB, NULL, NULL},
    {"releaseJob", "POST", "/jobs/{job_id}/release", JOB, NULL, NULL},
    {"checkpointJob", "POST", "/jobs/{job_id}/checkpoints", JOB, NULL, NULL},
    {"suspendJob", "POST", "/jobs/{job_id}/suspend", JOB, NULL, NULL},
    {"completeJobs", "POST", "/jobs:complete", JOB, NULL, NULL},
    {"listQueues", "GET", "/queues", READ, NULL, NULL},
    {"listWorkers", "GET", "/workers", READ, NULL, NULL},
    {"listDeadLetters", "GET", "/dead-letters", READ, NULL, NULL},
    {"retryDeadLetter", "POST", "/dead-letters/{job_id}/retry", CHANGE, NULL, NULL},
    {"dropDeadLetter", "DELETE", "/dead-letters/{job_id}", BARE, NULL, NULL},
    {"listApprovals", "GET", "/approvals", READ, NULL, NULL},
    {"getApproval", "GET", "/approvals/{job_id}", READ, NULL, NULL},
    {"approvalAnalytics", "GET", "/approvals/analytics", READ, NULL, NULL},
    {"approve", "POST", "/approvals/{job_id}/approve", CHANGE, NULL, NULL},
    {"reject", "POST", "/approvals/{job_id}/reject", CHANGE, NULL, NULL},
    {"listWorkflows", "GET", "/workflows", READ, NULL, NULL},
    {"getWorkflow", "GET", "/workflows/{workflow_id}", READ, NULL, NULL},
    {"putWorkflow", "PUT", "/workflows/{workflow_id}", CHANGE, "definition", NULL},
    {"archiveWorkflow", "DELETE", "/workflows/{workflow_id}", BARE, NULL, NULL},
    {"listWorkflowVersions", "GET", "/workflows/{workflow_id}/versions", READ, NULL, NULL},
    {"validateWorkflow", "POST", "/workflows/{workflow_id}/validate", ASK, "definition", NULL},
    {"listEntityTypes", "GET", "/entity-types", READ, NULL, NULL},
    {"putEntityType", "PUT", "/entity-types/{type}", CHANGE, NULL, NULL},
    {"getEntityType", "GET", "/entity-types/{type}", READ, NULL, NULL},
    {"getEntityTypeStats", "GET", "/entity-types/{type}/stats", READ, NULL, NULL},
    {"listEntities", "GET", "/entities/{type}", READ, NULL, NULL},
    {"getEntity", "GET", "/entities/{type}/{id}", READ, NULL, NULL},
    {"deleteEntity", "DELETE", "/entities/{type}/{id}", BARE, NULL, NULL},
    {"signalEntity", "POST", "/entities/{type}/{id}/signals", CHANGE, NULL, NULL},
    {"updateEntity", "POST", "/entities/{type}/{id}/updates", CHANGE, NULL, NULL},
    {"getEntityUpdate", "GET", "/entities/{type}/{id}/updates/{seq}", READ, NULL, NULL},
    {"listEntityEvents", "GET", "/entities/{type}/{id}/events", READ, NULL, NULL},
    {"listEntityGenerations", "GET", "/entities/{type}/{id}/generations", READ, NULL, NULL},
    {"migrateEntity", "POST", "/entities/{type}/{id}/migrate", CHANGE, NULL, NULL},
    {"listSchedules", "GET", "/schedules", READ, NULL, NULL},
    {"putSchedule", "PUT", "/schedules/{schedule_id}", CHANGE, NULL, NULL},
    {"getSchedule", "GET", "/schedules/{schedule_id}", READ, NULL, NULL},
    {"deleteSchedule", "DELETE", "/schedules/{schedule_id}", BARE, NULL, NULL},
    {"triggerSchedule", "POST", "/schedules/{schedule_id}/trigger", CHANGE, NULL, NULL},
    {"listWebhooks", "GET", "/webhooks", READ, NULL, NULL},
    {"createWebhook", "POST", "/webhooks", CHANGE, NULL, NULL},
    {"getWebhook", "GET", "/webhooks/{webhook_id}", READ, NULL, NULL},
    {"putWebhook", "PUT", "/webhooks/{webhook_id}", CHANGE, NULL, NULL},
    {"deleteWebhook", "DELETE", "/webhooks/{webhook_id}", BARE, NULL, NULL},
    {"rotateWebhook", "POST", "/webhooks/{webhook_id}/rotate", CHANGE, NULL, NULL},
    {"testWebhook", "POST", "/webhooks/{webhook_id}/test", CHANGE, NULL, NULL},
    {"listDeliveries", "GET", "/webhooks/{webhook_id}/deliveries", READ, NULL, NULL},
    {"redeliver", "POST", "/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver", CHANGE, NULL,
     NULL},
    {"listTenants", "GET", "/tenants", READ, NULL, NULL},
    {"getTenant", "GET", "/tenants/{tenant_id}", READ, NULL, NULL},
    {"putTenant", "PUT", "/tenants/{tenant_id}", CHANGE, "settings", NULL},
    {"listTenantSettings", "GET", "/tenants/{tenant_id}/settings", READ, NULL, NULL},
    {"rollbackTenant", "POST", "/tenants/{tenant_id}/rollback", CHANGE, NULL, NULL},
    {"listKeys", "GET", "/keys", READ, NULL, NULL},
    {"createKey", "POST", "/keys", CHANGE, NULL, NULL},
    {"revokeKey", "DELETE", "/keys/{key_id}", BARE, NULL, NULL},
    {"getIdempotencyKey", "GET", "/idempotency-keys/{key}", READ, NULL, NULL},
    {"releaseIdempotencyKey", "DELETE", "/idempotency-keys/{key}", BARE, NULL, NULL},
    {"listOutbox", "GET", "/outbox", READ, NULL, NULL},
    {"retryParked", "POST", "/outbox/{message_id}/retry", BARE, NULL, NULL},
    {"listAudit", "GET", "/audit", READ, NULL, NULL},
    {"verifyAudit", "GET", "/audit/verify", READ, NULL, NULL},
    {"doctor", "GET", "/doctor", READ, NULL, NULL},
    {"repair", "POST", "/doctor/repair", CHANGE, NULL, NULL},
    {"health", "GET", "//healthz", READ, NULL, NULL},
    {"ready", "GET", "//readyz", READ, NULL, NULL},
};

static const struct operation *find(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    return NULL;
}

/* A text, number or truth value as a query or a path has it; the caller frees it. NULL for others.
 */
static char *scalar_text(const json_t *value)
{
    if (json_is_string(value))
        return format("%s", json_string_value(value));
    return json_is_number(value) || json_is_boolean(value) ? json_text(value) : NULL;
}

/* Takes the argument of this name out of `args` as a segment of the path. */
static enum pawl_err add_parameter(struct buffer *path, json_t *args, const char *name, size_t size,
                                   struct pawl_error *error)
{
    char *own = format("%.*s", (int)size, name);
    char *text = own ? scalar_text(json_object_get(args, own)) : NULL;
    if (text && *text)
        add_segment(path, text);
    else
        error_set(error, PAWL_ERR_BAD_ARGUMENT, "The argument %.*s is missing", (int)size, name);
    bool found = text && *text;
    if (own)
        json_object_del(args, own);
    free(own);
    free(text);
    return found ? PAWL_OK : PAWL_ERR_BAD_ARGUMENT;
}

/* The path of an operation; a pattern that begins with "//" is not of the API's version 1. */
static enum pawl_err fill_path(const struct operation *operation, json_t *args, char **ret_path,
                               struct pawl_error *error)
{
    struct buffer path = {0};
    const char *rest = operation->path;
    if (rest[1] == '/')
        rest++;
    else
        buffer_text(&path, "/api/v1");
    enum pawl_err result = PAWL_OK;
    while (*rest && result == PAWL_OK) {
        size_t plain = strcspn(rest, "{");
        buffer_add(&path, rest, plain);
        rest += plain;
        if (*rest) {
            size_t size = strcspn(rest, "}");
            result = add_parameter(&path, args, rest + 1, size - 1, error);
            rest += size + 1;
        }
    }
    if (result == PAWL_OK && path.failed)
        result = error_no_memory(error);
    if (result == PAWL_OK)
        *ret_path = path.data;
    else
        buffer_free(&path);
    return result;
}

static enum pawl_err fill_query(struct request *request, json_t *args, struct pawl_error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach (args, name, value) {
        char *text = scalar_text(value);
        if (!text)
            return error_set(error, PAWL_ERR_BAD_ARGUMENT,
                             "The argument %s is neither text, number nor truth value", name);
        json_object_set_new(request->query, name, json_string(text));
        free(text);
    }
    return PAWL_OK;
}

/* Takes a number out of the arguments; `missing` if it is not there. */
static double take_number(json_t *args, const char *name, double missing)
{
    const json_t *value = json_object_get(args, name);
    double number = json_is_number(value) ? json_number_value(value) : missing;
    json_object_del(args, name);
    return number;
}

/* The key goes into the header or, for a start that needs it, into the body. */
static enum pawl_err fill_key(struct pawl_client *client, const struct operation *operation,
                              struct request *request, json_t *args, json_t *body,
                              struct pawl_error *error)
{
    char made[KEY_SIZE];
    json_t *given = json_incref(json_object_get(args, "idempotency_key"));
    json_object_del(args, "idempotency_key");
    if (!given)
        client->ports.new_key(client->ports.at, made);
    const char *key = given ? json_string_value(given) : made;
    char *header = NULL;
    enum pawl_err result = key_header(key ? key : "", &header, error);
    if (result == PAWL_OK && header)
        json_object_set_new(request->headers, "Idempotency-Key", json_string(header));
    else if (result == PAWL_OK && strcmp(operation->name, "startRun") == 0)
        json_object_set(body, "idempotency_key", given);
    else if (result == PAWL_OK)
        result = error_set(error, PAWL_ERR_BAD_ARGUMENT,
                           "Only the start of a run can have a key with characters outside ASCII");
    free(header);
    json_decref(given);
    return result;
}

static void fill_version(struct request *request, json_t *args)
{
    const json_t *version = json_object_get(args, "if_match");
    if (json_is_integer(version)) {
        char *text = format("\"%lld\"", (long long)json_integer_value(version));
        json_object_set_new(request->headers, "If-Match", json_string(text));
        free(text);
    }
    json_object_del(args, "if_match");
}

/* How long the answer may take beyond the usual: the wait that the call asks for. */
static void fill_wait(const struct operation *operation, struct request *request, json_t *args)
{
    bool updates = strcmp(operation->name, "updateEntity") == 0;
    if (operation->kind == JOB) {
        request->timeout_ms += json_number_value(json_object_get(args, "wait_ms"));
    } else if (updates || strcmp(operation->name, "startRun") == 0) {
        double wait_ms = take_number(args, "wait_ms", -1);
        request->timeout_ms += wait_ms >= 0 ? wait_ms : updates ? UPDATE_WAIT_MS : 0;
        if (wait_ms >= 0) {
            char *text = format("%.0f", wait_ms);
            json_object_set_new(request->query, "wait_ms", json_string(text));
            free(text);
        }
    }
}

/* Members that are null are left out. What keeps all generations is null on the wire. */
static void fill_body(const struct operation *operation, json_t *args, json_t *body)
{
    const char *name;
    json_t *value;
    json_object_foreach (args, name, value)
        if (!json_is_null(value))
            json_object_set(body, name, value);
    if (strcmp(operation->name, "putEntityType") == 0 &&
        strcmp(member_text(body, "keep_generations"), "all") == 0)
        json_object_set_new(body, "keep_generations", json_null());
}

static void drop_nulls(json_t *args)
{
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(args, next, name, value) if (json_is_null(value))
        json_object_del(args, name);
}

static enum pawl_err fill_request(struct pawl_client *client, const struct operation *operation,
                                  json_t *args, struct request *request, struct pawl_error *error)
{
    if (operation->kind == READ) {
        drop_nulls(args);
        return fill_query(request, args, error);
    }
    enum pawl_err result = PAWL_OK;
    fill_wait(operation, request, args);
    if (operation->kind == CHANGE || operation->kind == BARE) {
        fill_version(request, args);
        result = fill_key(client, operation, request, args, request->body, error);
    }
    if (request->body && !operation->whole)
        fill_body(operation, args, request->body);
    return result;
}

static json_t *begin_body(const struct operation *operation, json_t *args)
{
    if (operation->kind == READ || operation->kind == BARE)
        return NULL;
    return operation->whole ? json_incref(json_object_get(args, operation->whole)) : json_object();
}

/* A definition that has an id needs no argument workflow_id. */
static void fill_id(const struct operation *operation, json_t *args)
{
    const json_t *definition = operation->whole ? json_object_get(args, operation->whole) : NULL;
    json_t *id = json_object_get(definition, "id");
    if (id && !json_object_get(args, "workflow_id"))
        json_object_set(args, "workflow_id", id);
}

static enum pawl_err make_request(struct pawl_client *client, const struct operation *operation,
                                  json_t *args, struct request *ret_request,
                                  struct pawl_error *error)
{
    char *path = NULL;
    fill_id(operation, args);
    enum pawl_err result = fill_path(operation, args, &path, error);
    if (result != PAWL_OK)
        return result;
    json_t *body = begin_body(operation, args);
    if (operation->whole && !json_is_object(body)) {
        free(path);
        json_decref(body);
        return error_set(error, PAWL_ERR_BAD_ARGUMENT, "The argument %s is not an object",
                         operation->whole);
    }
    struct request request = client_request(client, operation->method, path, body);
    result = fill_request(client, operation, args, &request, error);
    if (result == PAWL_OK)
        *ret_request = request;
    else
        request_free(&request);
    return result;
}

/* The member of an answer that its caller gets. */
static json_t *unwrap(const struct operation *operation, json_t *answer)
{
    json_t *member =
        operation->member ? json_incref(json_object_get(answer, operation->member)) : NULL;
    if (!member)
        return answer;
    json_decref(answer);
    return member;
}

enum pawl_err pawl_call(struct pawl_client *client, const char *name, json_t *args,
                        json_t **ret_result, struct pawl_error *error)
{
    const struct operation *operation = find(name);
    json_t *own = args ? json_copy(args) : json_object();
    json_decref(args);
    enum pawl_err result = PAWL_OK;
    struct request request = {0};
    if (!operation)
        result = error_set(error, PAWL_ERR_BAD_ARGUMENT, "The API has no operation %s", name);
    else if (!json_is_object(own))
        result =
            error_set(error, PAWL_ERR_BAD_ARGUMENT, "The arguments of %s are not an object", name);
    else
        result = make_request(client, operation, own, &request, error);
    json_decref(own);
    if (result != PAWL_OK)
        return result;
    struct call_rule rule = client_rule(client);
    rule.budgeted = operation->kind != JOB;
    json_t *answer = NULL;
    result = client_perform(client, &request, &rule, &answer, error);
    if (result == PAWL_OK && ret_result)
        *ret_result = unwrap(operation, answer);
    else
        json_decref(answer);
    return result;
}

/* Hands on the items of a page. False if no more are wanted. */
static bool each_item(const json_t *page, pawl_item_fn *each, void *user)
{
    size_t i;
    json_t *item;
    json_array_foreach (json_object_get(page, "items"), i, item)
        if (!each(item, user))
            return false;
    return true;
}

enum pawl_err pawl_list(struct pawl_client *client, const char *operation, json_t *args,
                        pawl_item_fn *each, void *user, struct pawl_error *error)
{
    json_t *own = args ? json_copy(args) : json_object();
    json_decref(args);
    enum pawl_err result = PAWL_OK;
    for (bool more = true; more && result == PAWL_OK;) {
        json_t *page = NULL;
        result = pawl_call(client, operation, json_incref(own), &page, error);
        more = result == PAWL_OK && each_item(page, each, user);
        json_t *cursor = json_object_get(page, "next_cursor");
        more = more && json_is_string(cursor) && json_object_set(own, "cursor", cursor) == 0;
        json_decref(page);
    }
    json_decref(own);
    return result;
}
