/* Every way a request can end, in one table: the symbol in the code, the stable code that clients
 * see, the HTTP status, whether the same request may succeed later, and the title of the problem.
 */
#ifndef PAWL_BASE_ERR_H
#define PAWL_BASE_ERR_H

#include "base/macros.h"

#include <stdbool.h>

/* A table is read by its columns. */
/* clang-format off */
#define ERR_TABLE(X)                                                                               \
    /* symbol                 code                           http  retry  title */                 \
    X(ERR_OK,                 "OK",                           200, false, "Done")                  \
    X(ERR_BAD_REQUEST,        "BAD_REQUEST",                  400, false, "The request is malformed") \
    X(ERR_JSON_INVALID,       "JSON_INVALID",                 400, false, "The body is not valid JSON") \
    X(ERR_FIELD_INVALID,      "FIELD_INVALID",                400, false, "A field is missing, unknown or invalid") \
    X(ERR_IDEM_KEY_INVALID,   "IDEMPOTENCY_KEY_INVALID",      400, false, "The idempotency key is not valid") \
    X(ERR_CURSOR_INVALID,     "CURSOR_INVALID",               400, false, "The cursor does not belong to this list") \
    X(ERR_UNAUTHENTICATED,    "UNAUTHENTICATED",              401, false, "A valid API key is required") \
    X(ERR_FORBIDDEN,          "FORBIDDEN",                    403, false, "Your role does not allow this") \
    X(ERR_CROSS_SITE,         "CROSS_SITE_REQUEST",           403, false, "Pages from another origin cannot call a development server") \
    X(ERR_NOT_AN_APPROVER,    "NOT_AN_APPROVER",              403, false, "You are not an approver for this step") \
    X(ERR_SELF_APPROVAL,      "SELF_APPROVAL_DENIED",         403, false, "You cannot approve your own request") \
    X(ERR_NOT_FOUND,          "NOT_FOUND",                    404, false, "Resource not found") \
    X(ERR_TENANT_NOT_FOUND,   "TENANT_NOT_FOUND",             404, false, "Tenant not found") \
    X(ERR_WORKFLOW_NOT_FOUND, "WORKFLOW_NOT_FOUND",           404, false, "Workflow not found") \
    X(ERR_RUN_NOT_FOUND,      "RUN_NOT_FOUND",                404, false, "Run not found")  \
    X(ERR_JOB_NOT_FOUND,      "JOB_NOT_FOUND",                404, false, "Job not found")  \
    X(ERR_IDEM_KEY_NOT_FOUND, "IDEMPOTENCY_KEY_NOT_FOUND",    404, false, "Idempotency key not found") \
    X(ERR_SCHEDULE_NOT_FOUND, "SCHEDULE_NOT_FOUND",           404, false, "Schedule not found") \
    X(ERR_SETTINGS_NOT_FOUND, "SETTINGS_VERSION_NOT_FOUND",   404, false, "Settings version not found") \
    X(ERR_APPROVAL_NOT_FOUND, "APPROVAL_NOT_FOUND",           404, false, "Approval not found") \
    X(ERR_WEBHOOK_NOT_FOUND,  "WEBHOOK_NOT_FOUND",            404, false, "Webhook not found") \
    X(ERR_DELIVERY_NOT_FOUND, "DELIVERY_NOT_FOUND",           404, false, "Delivery not found") \
    X(ERR_ENTITY_TYPE_NOT_FOUND, "ENTITY_TYPE_NOT_FOUND",     404, false, "Entity type not found") \
    X(ERR_ENTITY_NOT_FOUND,   "ENTITY_NOT_FOUND",             404, false, "Entity not found") \
    X(ERR_UPDATE_NOT_FOUND,   "UPDATE_NOT_FOUND",             404, false, "Update not found; it may have been removed") \
    X(ERR_METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED",           405, false, "This resource does not support this method") \
    X(ERR_IDEM_IN_FLIGHT,     "IDEMPOTENCY_IN_FLIGHT",        409, true,  "A request with this key is still in progress") \
    X(ERR_CONCURRENCY,        "CONCURRENCY_ERROR",            409, false, "The resource changed since it was read") \
    X(ERR_RUN_IS_OVER,        "RUN_IS_OVER",                  409, false, "The run has already ended") \
    X(ERR_RUN_NOT_OVER,       "RUN_NOT_OVER",                 409, false, "The run has not ended yet") \
    X(ERR_RUN_NOT_UNDER_WAY,  "RUN_NOT_UNDER_WAY",            409, false, "The run has not started yet") \
    X(ERR_RUN_IS_A_CHILD,     "RUN_IS_A_CHILD",               409, false, "The run is part of another run") \
    X(ERR_RUN_NOT_RETRYABLE,  "RUN_NOT_RETRYABLE",            409, false, "The run cannot be retried, only rerun") \
    X(ERR_RUN_BEING_REMOVED,  "RUN_BEING_REMOVED",            409, false, "Retention is removing this run") \
    X(ERR_NOT_A_DEAD_LETTER,  "NOT_A_DEAD_LETTER",            409, false, "The job is not a dead letter") \
    X(ERR_ENTITY_CALL_KEPT,   "ENTITY_CALL_NOT_DROPPABLE",    409, false, "An entity call cannot be dropped") \
    X(ERR_ENTITY_MIGRATING,   "ENTITY_MIGRATING",             409, false, "The entity is being migrated to another version") \
    X(ERR_STATUS_CONFLICT,    "STATUS_CONFLICT",              409, false, "The current status does not allow this") \
    X(ERR_JOB_NOT_CLAIMABLE,  "JOB_NOT_CLAIMABLE",            409, false, "The job is not waiting for a worker") \
    X(ERR_LEASE_LOST,         "LEASE_LOST",                   409, false, "The lease on this job is no longer valid") \
    X(ERR_APPROVAL_CONFLICT,  "APPROVAL_CONFLICT",            409, false, "The opposite decision has already been made") \
    X(ERR_NOT_AWAITING_APPROVAL, "NOT_AWAITING_APPROVAL",     409, false, "No decision is pending here") \
    X(ERR_APPROVAL_EXPIRED,   "APPROVAL_EXPIRED",             409, false, "The approval expired before a decision") \
    X(ERR_APPROVAL_STALE,     "APPROVAL_STALE",               409, false, "The content has changed since you read it") \
    X(ERR_CONCURRENT_APPROVAL, "CONCURRENT_APPROVAL",         409, true,  "Someone else is deciding this right now") \
    X(ERR_WEBHOOK_LIMIT,      "WEBHOOK_LIMIT_REACHED",        409, false, "The tenant has reached its webhook limit") \
    X(ERR_VERSION_UNKNOWN,    "ENTITY_VERSION_UNKNOWN",       409, false, "The entity type has no such version") \
    X(ERR_BODY_TOO_LARGE,     "BODY_TOO_LARGE",               413, false, "The body is too large") \
    X(ERR_URI_TOO_LONG,       "URI_TOO_LONG",                 414, false, "The request target is too long") \
    X(ERR_MEDIA_TYPE,         "UNSUPPORTED_MEDIA_TYPE",       415, false, "The body must be application/json") \
    X(ERR_HOST_REFUSED,       "HOST_NOT_ALLOWED",             421, false, "A development server answers only to loopback host names") \
    X(ERR_DEFINITION_INVALID, "DEFINITION_INVALID",           422, false, "The workflow definition is not valid") \
    X(ERR_DEFINITION_UNSUPPORTED, "DEFINITION_UNSUPPORTED",   422, false, "This version of pawl cannot run the definition") \
    X(ERR_INPUT_INVALID,      "INPUT_INVALID",                422, false, "The input does not match the workflow's schema") \
    X(ERR_INPUT_TOO_COMPLEX,  "INPUT_TOO_COMPLEX",            422, false, "Checking the input against the schema takes too long") \
    X(ERR_EXPRESSION,         "EXPRESSION_FAILED",            422, false, "An expression could not be evaluated") \
    X(ERR_ANSWER_INVALID,     "ENTITY_ANSWER_INVALID",        422, false, "The handler's result cannot be applied") \
    X(ERR_TOO_LARGE,          "OPERATION_TOO_LARGE",          422, false, "The operation exceeds the memory limit per operation") \
    X(ERR_IDEM_KEY_REUSED,    "IDEMPOTENCY_KEY_REUSED",       422, false, "The key was already used for a different request") \
    X(ERR_MAX_CONCURRENT_RUNS, "MAX_CONCURRENT_RUNS",         429, true,  "The limit on concurrent runs is reached") \
    X(ERR_QUEUE_FULL,         "QUEUE_FULL",                   429, true,  "The queue is full") \
    X(ERR_INBOX_FULL,         "INBOX_FULL",                   429, true,  "The inbox is full") \
    X(ERR_RATE_LIMITED,       "RATE_LIMITED",                 429, true,  "The tenant is starting runs too fast") \
    X(ERR_LOGIN_THROTTLED,    "TOO_MANY_FAILED_LOGINS",       429, true,  "Too many invalid API keys from this address") \
    X(ERR_HEADERS_TOO_LARGE,  "HEADERS_TOO_LARGE",            431, false, "The request headers are too large") \
    X(ERR_INTERNAL,           "INTERNAL",                     500, true,  "The server failed")     \
    X(ERR_DAMAGED,            "OBJECT_DAMAGED",               500, false, "The stored object is damaged") \
    X(ERR_OVERLOADED,         "OVERLOADED",                   503, true,  "Too many requests are waiting") \
    X(ERR_GATE_UNAVAILABLE,   "ADMISSION_GATE_UNAVAILABLE",   503, true,  "The admission gate is unavailable") \
    X(ERR_NO_MEMORY,          "OUT_OF_MEMORY",                503, true,  "The server is out of memory") \
    X(ERR_STORE_BUSY,         "STORE_BUSY",                   503, true,  "The store is busy")     \
    X(ERR_STORE_FULL,         "STORE_FULL",                   503, true,  "The disk is full")      \
    X(ERR_STORE_FAILED,       "STORE_FAILED",                 503, true,  "Storage failed; the outcome is unknown. Retry with the same key.") \
    X(ERR_DRAINING,           "SHUTTING_DOWN",                503, true,  "The server is shutting down") \
    X(ERR_HTTP_VERSION,       "HTTP_VERSION_NOT_SUPPORTED",   505, false, "This HTTP version is not supported")
/* clang-format on */

enum err {
#define X(symbol, code, http, retry, title) symbol,
    ERR_TABLE(X)
#undef X
        ERR_COUNT
};

const char *err_code(enum err e);
const char *err_title(enum err e);
int err_http_status(enum err e);
bool err_retryable(enum err e);

/* The entry that speaks for a bare HTTP status, as the HTTP parser hands them out. */
enum err err_of_http_status(int status);

#endif
