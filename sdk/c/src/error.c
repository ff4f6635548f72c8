#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util.h"

static const char *const names[] = {
    [PAWL_OK] = "Ok",
    [PAWL_ERR_INVALID_REQUEST] = "InvalidRequest",
    [PAWL_ERR_KEY_REUSED] = "KeyReused",
    [PAWL_ERR_UNAUTHENTICATED] = "Unauthenticated",
    [PAWL_ERR_FORBIDDEN] = "Forbidden",
    [PAWL_ERR_NOT_FOUND] = "NotFound",
    [PAWL_ERR_CONFLICT] = "Conflict",
    [PAWL_ERR_LEASE_LOST] = "LeaseLost",
    [PAWL_ERR_APPROVAL_CONFLICT] = "ApprovalConflict",
    [PAWL_ERR_LIMIT_REACHED] = "LimitReached",
    [PAWL_ERR_UNAVAILABLE] = "Unavailable",
    [PAWL_ERR_SERVER_FAULT] = "ServerFault",
    [PAWL_ERR_NO_ANSWER] = "NoAnswer",
    [PAWL_ERR_RUN_FAILED] = "RunFailed",
    [PAWL_ERR_WAIT_TIMEOUT] = "WaitTimeout",
    [PAWL_ERR_WEBHOOK_INVALID] = "WebhookInvalid",
    [PAWL_ERR_JOB_FAILED] = "JobFailed",
    [PAWL_ERR_STEP_FAILED] = "StepFailed",
    [PAWL_ERR_REJECTED] = "Rejected",
    [PAWL_ERR_TIMED_OUT] = "TimedOut",
    [PAWL_ERR_SUSPENDED] = "Suspended",
    [PAWL_ERR_CANCELLED] = "Cancelled",
    [PAWL_ERR_BAD_ARGUMENT] = "BadArgument",
    [PAWL_ERR_NO_MEMORY] = "NoMemory",
};

/* Codes that have a kind of their own, whatever their status. */
static const struct {
    const char *code;
    enum pawl_err kind;
} by_code[] = {
    {"IDEMPOTENCY_KEY_REUSED", PAWL_ERR_KEY_REUSED},
    {"LEASE_LOST", PAWL_ERR_LEASE_LOST},
    {"APPROVAL_CONFLICT", PAWL_ERR_APPROVAL_CONFLICT},
    {"APPROVAL_EXPIRED", PAWL_ERR_APPROVAL_CONFLICT},
    {"APPROVAL_STALE", PAWL_ERR_APPROVAL_CONFLICT},
    {"NOT_AWAITING_APPROVAL", PAWL_ERR_APPROVAL_CONFLICT},
};

void pawl_error_clear(struct pawl_error *error)
{
    json_decref(error->details);
    *error = (struct pawl_error){0};
}

const char *pawl_err_name(enum pawl_err err)
{
    return (size_t)err < sizeof names / sizeof *names ? names[err] : "Unknown";
}

bool pawl_err_is(enum pawl_err err, enum pawl_err kind)
{
    if (err == kind)
        return true;
    if (kind == PAWL_ERR_INVALID_REQUEST)
        return err == PAWL_ERR_KEY_REUSED;
    return kind == PAWL_ERR_CONFLICT &&
           (err == PAWL_ERR_LEASE_LOST || err == PAWL_ERR_APPROVAL_CONFLICT);
}

enum pawl_err error_set(struct pawl_error *error, enum pawl_err kind, const char *message, ...)
{
    if (!error)
        return kind;
    char text[sizeof error->message * 2];
    va_list args;
    va_start(args, message);
    vsnprintf(text, sizeof text, message, args);
    va_end(args);
    pawl_error_clear(error);
    error->kind = kind;
    error->retryable = kind == PAWL_ERR_NO_ANSWER;
    copy_text(error->code, sizeof error->code, pawl_err_name(kind));
    copy_text(error->message, sizeof error->message, text);
    return kind;
}

enum pawl_err error_no_memory(struct pawl_error *error)
{
    return error_set(error, PAWL_ERR_NO_MEMORY, "Out of memory");
}

static enum pawl_err kind_of(int status, const char *code)
{
    for (size_t i = 0; i < sizeof by_code / sizeof *by_code; i++)
        if (strcmp(by_code[i].code, code) == 0)
            return by_code[i].kind;
    switch (status) {
    case 401:
        return PAWL_ERR_UNAUTHENTICATED;
    case 403:
        return PAWL_ERR_FORBIDDEN;
    case 404:
        return PAWL_ERR_NOT_FOUND;
    case 409:
        return PAWL_ERR_CONFLICT;
    case 429:
        return PAWL_ERR_LIMIT_REACHED;
    case 500:
        return PAWL_ERR_SERVER_FAULT;
    default:
        return status >= 500 && status != 505 ? PAWL_ERR_UNAVAILABLE : PAWL_ERR_INVALID_REQUEST;
    }
}

enum pawl_err error_refused(struct pawl_error *error, int status, json_t *problem, const char *text,
                            double retry_after_s)
{
    bool has_members = json_is_object(problem) && json_object_size(problem) > 0;
    const char *code = has_members ? member_text(problem, "code") : "";
    enum pawl_err kind = kind_of(status, code);
    if (!error)
        return kind;
    const json_t *retryable = json_object_get(problem, "retryable");
    const json_t *detail = json_object_get(
        problem, has_members && json_object_get(problem, "detail") ? "detail" : "title");
    pawl_error_clear(error);
    error->kind = kind;
    error->status = status;
    error->retryable = retryable ? json_is_true(retryable) : status == 429 || status >= 500;
    error->retry_after_s = retry_after_s;
    snprintf(error->code, sizeof error->code, "HTTP_%d", status);
    if (*code)
        copy_text(error->code, sizeof error->code, code);
    copy_text(error->message, sizeof error->message,
              has_members ? (json_is_string(detail) ? json_string_value(detail) : "") : text);
    copy_text(error->trace_id, sizeof error->trace_id,
              has_members ? member_text(problem, "trace_id") : "");
    error->details = has_members ? json_incref(problem) : NULL;
    return kind;
}

void error_copy(struct pawl_error *to, const struct pawl_error *from)
{
    if (!to || to == from)
        return;
    pawl_error_clear(to);
    *to = *from;
    json_incref(to->details);
}

json_t *error_wire(const struct pawl_error *error)
{
    json_t *wire = json_pack("{s:s, s:s, s:b}", "code", error->code, "message", error->message,
                             "retryable", error->retryable);
    if (error->details && error->status == 0)
        json_object_set(wire, "details", error->details);
    return wire;
}

enum pawl_err error_from_wire(struct pawl_error *error, enum pawl_err kind, const json_t *wire)
{
    error_set(error, kind, "%s", member_text(wire, "message"));
    copy_text(error->code, sizeof error->code, member_text(wire, "code"));
    error->retryable = json_is_true(json_object_get(wire, "retryable"));
    json_t *details = json_object_get(wire, "details");
    error->details = json_is_null(details) ? NULL : json_incref(details);
    return kind;
}
