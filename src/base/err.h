/* Every way a request can end, in one table: the symbol in the code, the stable code that clients
 * see, the HTTP status, whether the same request may succeed later, the class, and the title of the
 * problem. */
#ifndef PAWL_BASE_ERR_H
#define PAWL_BASE_ERR_H

#include "base/macros.h"

#include <stdbool.h>

/* What an error says about the rows, and so what becomes of the transaction.
 *
 * REFUSAL  The request cannot be done. Nothing was changed, and the rest of the batch continues. A
 *          refusal that did change rows is a bug: it is rolled back, logged and answered 500.
 * FAILURE  The store, or a limit on one operation's resources, aborted the operation. Its changes
 *          are rolled back.
 * DAMAGE   A stored object is not what pawl writes. Rolled back; the log names the object.
 * BUG      pawl contradicts itself. Rolled back and logged. */
enum err_class {
    ERR_CLASS_NONE, /* of ERR_OK */
    ERR_CLASS_REFUSAL,
    ERR_CLASS_FAILURE,
    ERR_CLASS_DAMAGE,
    ERR_CLASS_BUG,
};

/* A table is read by its columns. */
/* clang-format off */
#define ERR_TABLE(X)                                                                               \
    /* symbol                    code                          http  retry  class    title */      \
    X(ERR_OK,                    "OK",                         200, false, NONE,    "Done")        \
    X(ERR_BAD_REQUEST,           "BAD_REQUEST",                400, false, REFUSAL, "The request is malformed") \
    X(ERR_JSON_INVALID,          "JSON_INVALID",               400, false, REFUSAL, "The body is not valid JSON") \
    X(ERR_FIELD_INVALID,         "FIELD_INVALID",              400, false, REFUSAL, "A field is missing, unknown or invalid") \
    X(ERR_IDEM_KEY_INVALID,      "IDEMPOTENCY_KEY_INVALID",    400, false, REFUSAL, "The idempotency key is not valid") \
    X(ERR_CURSOR_INVALID,        "CURSOR_INVALID",             400, false, REFUSAL, "The cursor does not belong to this list") \
    X(ERR_UNAUTHENTICATED,       "UNAUTHENTICATED",            401, false, REFUSAL, "A valid API key is required") \
    X(ERR_FORBIDDEN,             "FORBIDDEN",                  403, false, REFUSAL, "Your role does not allow this") \
    X(ERR_CROSS_SITE,            "CROSS_SITE_REQUEST",         403, false, REFUSAL, "Pages from another origin cannot make this request") \
    X(ERR_NOT_AN_APPROVER,       "NOT_AN_APPROVER",            403, false, REFUSAL, "You are not an approver for this step") \
    X(ERR_SELF_APPROVAL,         "SELF_APPROVAL_DENIED",       403, false, REFUSAL, "You cannot approve your own request") \
    X(ERR_NOT_FOUND,             "NOT_FOUND",                  404, false, REFUSAL, "Resource not found") \
    X(ERR_TENANT_NOT_FOUND,      "TENANT_NOT_FOUND",           404, false, REFUSAL, "Tenant not found") \
    X(ERR_WORKFLOW_NOT_FOUND,    "WORKFLOW_NOT_FOUND",         404, false, REFUSAL, "Workflow not found") \
    X(ERR_RUN_NOT_FOUND,         "RUN_NOT_FOUND",              404, false, REFUSAL, "Run not found") \
    X(ERR_JOB_NOT_FOUND,         "JOB_NOT_FOUND",              404, false, REFUSAL, "Job not found") \
    X(ERR_IDEM_KEY_NOT_FOUND,    "IDEMPOTENCY_KEY_NOT_FOUND",  404, false, REFUSAL, "Idempotency key not found") \
    X(ERR_SCHEDULE_NOT_FOUND,    "SCHEDULE_NOT_FOUND",         404, false, REFUSAL, "Schedule not found") \
    X(ERR_SETTINGS_NOT_FOUND,    "SETTINGS_VERSION_NOT_FOUND", 404, false, REFUSAL, "Settings version not found") \
    X(ERR_APPROVAL_NOT_FOUND,    "APPROVAL_NOT_FOUND",         404, false, REFUSAL, "Approval not found") \
    X(ERR_WEBHOOK_NOT_FOUND,     "WEBHOOK_NOT_FOUND",          404, false, REFUSAL, "Webhook not found") \
    X(ERR_DELIVERY_NOT_FOUND,    "DELIVERY_NOT_FOUND",         404, false, REFUSAL, "Delivery not found") \
    X(ERR_ENTITY_TYPE_NOT_FOUND, "ENTITY_TYPE_NOT_FOUND",      404, false, REFUSAL, "Entity type not found") \
    X(ERR_ENTITY_NOT_FOUND,      "ENTITY_NOT_FOUND",           404, false, REFUSAL, "Entity not found") \
    X(ERR_UPDATE_NOT_FOUND,      "UPDATE_NOT_FOUND",           404, false, REFUSAL, "Update not found; it may have been removed") \
    X(ERR_METHOD_NOT_ALLOWED,    "METHOD_NOT_ALLOWED",         405, false, REFUSAL, "This resource does not support this method") \
    X(ERR_IDEM_IN_FLIGHT,        "IDEMPOTENCY_IN_FLIGHT",      409, true,  REFUSAL, "A request with this key is still in progress") \
    X(ERR_CONCURRENCY,           "CONCURRENCY_ERROR",          409, false, REFUSAL, "The resource changed since it was read") \
    X(ERR_RUN_IS_OVER,           "RUN_IS_OVER",                409, false, REFUSAL, "The run has already ended") \
    X(ERR_RUN_NOT_OVER,          "RUN_NOT_OVER",               409, false, REFUSAL, "The run has not ended yet") \
    X(ERR_RUN_NOT_UNDER_WAY,     "RUN_NOT_UNDER_WAY",          409, false, REFUSAL, "The run has not started yet") \
    X(ERR_RUN_IS_A_CHILD,        "RUN_IS_A_CHILD",             409, false, REFUSAL, "The run is a child of another run") \
    X(ERR_RUN_NOT_RETRYABLE,     "RUN_NOT_RETRYABLE",          409, false, REFUSAL, "The run cannot be retried, only rerun") \
    X(ERR_RUN_BEING_REMOVED,     "RUN_BEING_REMOVED",          409, false, REFUSAL, "Retention is removing this run") \
    X(ERR_NOT_A_DEAD_LETTER,     "NOT_A_DEAD_LETTER",          409, false, REFUSAL, "The job is not a dead letter") \
    X(ERR_ENTITY_CALL_KEPT,      "ENTITY_CALL_NOT_DROPPABLE",  409, false, REFUSAL, "An entity call cannot be dropped") \
    X(ERR_ENTITY_MIGRATING,      "ENTITY_MIGRATING",           409, false, REFUSAL, "The entity is being migrated to another version") \
    X(ERR_STATUS_CONFLICT,       "STATUS_CONFLICT",            409, false, REFUSAL, "The current status does not allow this") \
    X(ERR_JOB_NOT_CLAIMABLE,     "JOB_NOT_CLAIMABLE",          409, false, REFUSAL, "The job is not waiting for a worker") \
    X(ERR_LEASE_LOST,            "LEASE_LOST",                 409, false, REFUSAL, "The lease on this job is no longer valid") \
    X(ERR_JOB_NOT_DURABLE,       "JOB_NOT_DURABLE",            409, false, REFUSAL, "The call of an entity has no checkpoints and cannot be suspended") \
    X(ERR_JOB_LIMIT,             "JOB_LIMIT_REACHED",          409, false, REFUSAL, "The job has reached its limit of checkpoints or suspensions") \
    X(ERR_APPROVAL_CONFLICT,     "APPROVAL_CONFLICT",          409, false, REFUSAL, "The opposite decision has already been made") \
    X(ERR_NOT_AWAITING_APPROVAL, "NOT_AWAITING_APPROVAL",      409, false, REFUSAL, "The job is not waiting for a decision") \
    X(ERR_APPROVAL_EXPIRED,      "APPROVAL_EXPIRED",           409, false, REFUSAL, "The approval expired before a decision was made") \
    X(ERR_APPROVAL_STALE,        "APPROVAL_STALE",             409, false, REFUSAL, "The content has changed since you read it") \
    X(ERR_CONCURRENT_APPROVAL,   "CONCURRENT_APPROVAL",        409, true,  REFUSAL, "Someone else is deciding this right now") \
    X(ERR_WEBHOOK_LIMIT,         "WEBHOOK_LIMIT_REACHED",      409, false, REFUSAL, "The tenant has reached its webhook limit") \
    X(ERR_VERSION_UNKNOWN,       "ENTITY_VERSION_UNKNOWN",     409, false, REFUSAL, "The entity type has no such version") \
    X(ERR_BODY_TOO_LARGE,        "BODY_TOO_LARGE",             413, false, REFUSAL, "The body is too large") \
    X(ERR_URI_TOO_LONG,          "URI_TOO_LONG",               414, false, REFUSAL, "The request target is too long") \
    X(ERR_MEDIA_TYPE,            "UNSUPPORTED_MEDIA_TYPE",     415, false, REFUSAL, "The body must be application/json") \
    X(ERR_EXPECTATION,           "EXPECTATION_FAILED",         417, false, REFUSAL, "The server cannot meet the expectation") \
    X(ERR_HOST_REFUSED,          "HOST_NOT_ALLOWED",           421, false, REFUSAL, "A development server answers only to loopback host names") \
    X(ERR_DEFINITION_INVALID,    "DEFINITION_INVALID",         422, false, REFUSAL, "The workflow definition is not valid") \
    X(ERR_DEFINITION_UNSUPPORTED,"DEFINITION_UNSUPPORTED",     422, false, REFUSAL, "This version of pawl cannot run the definition") \
    X(ERR_INPUT_INVALID,         "INPUT_INVALID",              422, false, REFUSAL, "The input does not match the workflow's schema") \
    X(ERR_INPUT_TOO_COMPLEX,     "INPUT_TOO_COMPLEX",          422, false, REFUSAL, "Checking the input against the schema takes too long") \
    X(ERR_EXPRESSION,            "EXPRESSION_FAILED",          422, false, REFUSAL, "An expression could not be evaluated") \
    X(ERR_ANSWER_INVALID,        "ENTITY_ANSWER_INVALID",      422, false, REFUSAL, "The handler's result cannot be applied") \
    X(ERR_TOO_LARGE,             "OPERATION_TOO_LARGE",        422, false, FAILURE, "The operation needs more memory than one operation may use") \
    X(ERR_IDEM_KEY_REUSED,       "IDEMPOTENCY_KEY_REUSED",     422, false, REFUSAL, "The key was already used for a different request") \
    X(ERR_MAX_CONCURRENT_RUNS,   "MAX_CONCURRENT_RUNS",        429, true,  REFUSAL, "The limit on concurrent runs is reached") \
    X(ERR_QUEUE_FULL,            "QUEUE_FULL",                 429, true,  REFUSAL, "The queue is full") \
    X(ERR_INBOX_FULL,            "INBOX_FULL",                 429, true,  REFUSAL, "The inbox is full") \
    X(ERR_RATE_LIMITED,          "RATE_LIMITED",               429, true,  REFUSAL, "The tenant is starting runs too fast") \
    X(ERR_LOGIN_THROTTLED,       "TOO_MANY_FAILED_LOGINS",     429, true,  REFUSAL, "Too many invalid API keys from this address") \
    X(ERR_HEADERS_TOO_LARGE,     "HEADERS_TOO_LARGE",          431, false, REFUSAL, "The request headers are too large") \
    X(ERR_INTERNAL,              "INTERNAL",                   500, true,  BUG,     "Internal server error") \
    X(ERR_DAMAGED,               "OBJECT_DAMAGED",             500, false, DAMAGE,  "The stored object is damaged") \
    X(ERR_OVERLOADED,            "OVERLOADED",                 503, true,  REFUSAL, "Too many requests are waiting") \
    X(ERR_GATE_UNAVAILABLE,      "ADMISSION_GATE_UNAVAILABLE", 503, true,  REFUSAL, "The admission gate is unavailable") \
    X(ERR_OIDC_UNAVAILABLE,      "OPENID_PROVIDER_UNAVAILABLE", 503, true, REFUSAL, "The OpenID provider cannot be used") \
    X(ERR_NO_MEMORY,             "OUT_OF_MEMORY",              503, true,  FAILURE, "The server is out of memory") \
    X(ERR_STORE_BUSY,            "STORE_BUSY",                 503, true,  FAILURE, "The store is busy") \
    X(ERR_STORE_FULL,            "STORE_FULL",                 503, true,  FAILURE, "The disk is full") \
    X(ERR_STORE_FAILED,          "STORE_FAILED",               503, true,  FAILURE, "Storage failed; the outcome is unknown. Retry with the same key.") \
    X(ERR_SHARD_UNAVAILABLE,     "SHARD_UNAVAILABLE",          503, true,  REFUSAL, "No node serves the tenant's shard right now") \
    X(ERR_DRAINING,              "SHUTTING_DOWN",              503, true,  REFUSAL, "The server is shutting down") \
    X(ERR_HTTP_VERSION,          "HTTP_VERSION_NOT_SUPPORTED", 505, false, REFUSAL, "This HTTP version is not supported")
/* clang-format on */

enum err {
#define X(symbol, code, http, retry, class, title) symbol,
    ERR_TABLE(X)
#undef X
        ERR_COUNT
};

const char *err_code(enum err e);
const char *err_title(enum err e);
int err_http_status(enum err e);
bool err_retryable(enum err e);
enum err_class err_class(enum err e);
bool err_is_refusal(enum err e);
/* Rows may be half written: the transaction is rolled back. */
bool err_rolls_back(enum err e);
/* A temporary failure of the machine or the store, which would affect other operations too. */
bool err_is_outage(enum err e);

/* For an object that an operation has loaded besides the one it was asked about: the caller must
 * not see its refusals. A refusal becomes ERR_DAMAGED, everything else stays. */
enum err err_of_other(enum err e);
/* For a place where rows may have changed already: a refusal there is a bug, and becomes
 * ERR_INTERNAL. Everything else stays. */
enum err err_after_change(enum err e);

#endif
