/* Durable functions: what is stored under which name, when a job is suspended, and what a function
 * gets back.
 *
 * Results are found by name: a function that runs again calls its steps again, and those that are
 * stored are not executed. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "error.h"

#define CHILD_WAIT_MS 2000
#define STEP_ATTEMPTS 3
static const struct pawl_retry until_answered = {PAWL_JITTER_FULL, 200, 10000, 2, 0, 0};

static double server_now(const struct pawl_ctx *ctx)
{
    const struct ports *ports = &ctx->worker->client->ports;
    return (double)ctx->server_ms + ports->now_ms(ports->at) - ctx->clock_ms;
}

/* Whether the function may go on. */
static enum pawl_err check(const struct pawl_ctx *ctx)
{
    if (ctx->suspended)
        return PAWL_ERR_SUSPENDED;
    return pawl_ctx_cancelled(ctx) ? PAWL_ERR_CANCELLED : PAWL_OK;
}

static bool is_cancelled(void *at)
{
    return pawl_ctx_cancelled(at);
}

/* A call about the job, repeated until it is answered. A job whose lease is lost ends its function:
 * no later step may act for it. */
static enum pawl_err post(struct pawl_ctx *ctx, const char *verb, json_t *body, json_t **ret_answer)
{
    enum pawl_err result = check(ctx);
    if (result != PAWL_OK) {
        json_decref(body);
        return result;
    }
    set_text(body, "lease_token", ctx->held->token);
    struct call_rule rule = {.retry = until_answered, .over = is_cancelled, .over_at = ctx};
    struct request request = job_request(ctx->worker->client, ctx->held->job_id, verb, body);
    result = client_perform(ctx->worker->client, &request, &rule, ret_answer, &ctx->error);
    if (result == PAWL_ERR_LEASE_LOST || result == PAWL_ERR_NOT_FOUND) {
        worker_lock(ctx->worker);
        ctx->held->cancelled = true;
        worker_unlock(ctx->worker);
    }
    return result != PAWL_OK && pawl_ctx_cancelled(ctx) ? PAWL_ERR_CANCELLED : result;
}

/* --- names, and what is stored --- */

/* `name` the first time, then `name#2`, `name#3`: loops need no names of their own. The caller
 * frees it. */
static char *unique(struct pawl_ctx *ctx, const char *name)
{
    long long count = json_integer_value(json_object_get(ctx->uses, name)) + 1;
    json_object_set_new(ctx->uses, name, json_integer(count));
    return count == 1 ? format("%s", name) : format("%s#%lld", name, count);
}

static bool knows(const struct pawl_ctx *ctx, const char *name)
{
    return json_object_get(ctx->outputs, name) || json_object_get(ctx->errors, name);
}

static bool is_resumed(const struct pawl_ctx *ctx, const char *name)
{
    return strcmp(member_text(ctx->resumed, "name"), name) == 0;
}

/* What is stored: the output (of a member, if one is named), or the error as this kind. */
static enum pawl_err stored(struct pawl_ctx *ctx, const char *name, enum pawl_err kind,
                            const char *member, json_t **ret_output)
{
    const json_t *error = json_object_get(ctx->errors, name);
    if (error) {
        error_from_wire(&ctx->error, kind, error);
        ctx->error.retryable = false;
        return kind;
    }
    json_t *output = json_object_get(ctx->outputs, name);
    output = member ? json_object_get(output, member) : output;
    if (ret_output)
        *ret_output = output ? json_deep_copy(output) : json_null();
    return PAWL_OK;
}

/* Stores {"output"} or {"error"}, which is given away; if the name is stored already, that one
 * counts. */
static enum pawl_err store(struct pawl_ctx *ctx, const char *name, json_t *outcome)
{
    json_t *error = json_object_get(outcome, "error"), *answer = NULL;
    if (error)
        json_object_set_new(error, "retryable", json_false());
    set_text(outcome, "name", name);
    enum pawl_err result = post(ctx, "checkpoints", outcome, &answer);
    if (result != PAWL_OK)
        return result;
    error = json_object_get(answer, "error");
    json_t *output = json_object_get(answer, "output");
    if (error && !json_is_null(error))
        json_object_set(ctx->errors, name, error);
    else
        json_object_set_new(ctx->outputs, name, output ? json_incref(output) : json_null());
    json_decref(answer);
    return PAWL_OK;
}

static enum pawl_err suspend(struct pawl_ctx *ctx, const char *name, json_t *wait)
{
    set_text(wait, "name", name);
    enum pawl_err result = post(ctx, "suspend", wait, NULL);
    if (result != PAWL_OK)
        return result;
    ctx->suspended = true;
    return PAWL_ERR_SUSPENDED;
}

static json_t *until(double unix_ms)
{
    char text[TIME_SIZE];
    time_text((int64_t)floor(unix_ms), text);
    return json_pack("{s:s}", "until", text);
}

/* --- steps --- */

static bool is_final(const json_t *error, const struct pawl_step_retry *retry, int attempts)
{
    if (!json_is_true(json_object_get(error, "retryable")))
        return true;
    const char *code = member_text(error, "code");
    for (const char *const *listed = retry->non_retryable; listed && *listed; listed++)
        if (strcmp(*listed, code) == 0)
            return true;
    return attempts >= (retry->max_attempts > 0 ? retry->max_attempts : STEP_ATTEMPTS);
}

/* The defaults are those of a definition's `retry`. */
static struct pawl_retry policy(const struct pawl_step_retry *retry)
{
    return (struct pawl_retry){.jitter = retry->jitter,
                               .base_ms = retry->backoff_ms > 0 ? retry->backoff_ms : 1000,
                               .max_ms = retry->max_backoff_ms > 0 ? retry->max_backoff_ms : 300000,
                               .multiplier = retry->multiplier > 0 ? retry->multiplier : 2};
}

/* What the function made of one attempt: {"output"} or {"error"}. */
static enum pawl_err attempt(struct pawl_ctx *ctx, const char *name, pawl_step_fn *function,
                             void *data, json_t **ret_outcome)
{
    char *outer = ctx->key, *key = format("%s:%s", ctx->held->job_id, name);
    json_t *output = NULL;
    if (!key)
        return error_no_memory(&ctx->error);
    pawl_error_clear(&ctx->error);
    ctx->key = key;
    enum pawl_err result = function(ctx, data, &output);
    ctx->key = outer;
    free(key);
    if (result == PAWL_ERR_SUSPENDED || result == PAWL_ERR_CANCELLED) {
        json_decref(output);
        return result;
    }
    char *text = output ? json_text(output) : NULL;
    if (result != PAWL_OK)
        *ret_outcome = json_pack("{s:o}", "error", context_failure(ctx, result));
    else if (output && !text)
        *ret_outcome =
            json_pack("{s:{s:s, s:s, s:b}}", "error", "code", "OUTPUT_NOT_JSON", "message",
                      "The output has text that is not UTF-8", "retryable", 0);
    else
        *ret_outcome = json_pack("{s:O?}", "output", output);
    free(text);
    json_decref(output);
    return PAWL_OK;
}

static enum pawl_err execute(struct pawl_ctx *ctx, const char *name, pawl_step_fn *function,
                             void *data, const struct pawl_step_retry *retry)
{
    const struct ports *ports = &ctx->worker->client->ports;
    struct pawl_retry rule = policy(retry);
    struct backoff backoff = backoff_begin(&rule);
    for (int attempts = 1;; attempts++) {
        json_t *outcome = NULL;
        enum pawl_err result = check(ctx);
        if (result == PAWL_OK)
            result = attempt(ctx, name, function, data, &outcome);
        if (result != PAWL_OK)
            return result;
        const json_t *error = json_object_get(outcome, "error");
        if (!error || is_final(error, retry, attempts))
            return store(ctx, name, outcome);
        json_decref(outcome);
        ctx->worker->ports.rest(ctx->worker->ports.at, ctx->held,
                                backoff_next(&backoff, ports->random, ports->at));
    }
}

enum pawl_err pawl_ctx_step(struct pawl_ctx *ctx, const char *name, pawl_step_fn *function,
                            void *data, const struct pawl_step_retry *retry, json_t **ret_output)
{
    static const struct pawl_step_retry usual;
    char *own = unique(ctx, name);
    if (!own)
        return error_no_memory(&ctx->error);
    enum pawl_err result = PAWL_OK;
    if (!knows(ctx, own))
        result = execute(ctx, own, function, data, retry ? retry : &usual);
    if (result == PAWL_OK)
        result = stored(ctx, own, PAWL_ERR_STEP_FAILED, NULL, ret_output);
    free(own);
    return result;
}

/* --- waiting --- */

/* Waits once under this name: suspends with `wait`, or stores what `outcome` makes of the end of
 * the wait. Both are given away. */
static enum pawl_err wait_once(struct pawl_ctx *ctx, const char *name, json_t *wait,
                               json_t *(*outcome)(const json_t *resumed, const char *what),
                               const char *what)
{
    if (knows(ctx, name)) {
        json_decref(wait);
        return PAWL_OK;
    }
    if (!is_resumed(ctx, name))
        return suspend(ctx, name, wait);
    json_decref(wait);
    return store(ctx, name, outcome(ctx->resumed, what));
}

static json_t *slept(const json_t *resumed, const char *what)
{
    (void)resumed;
    (void)what;
    return json_pack("{s:n}", "output");
}

enum pawl_err pawl_ctx_sleep_until(struct pawl_ctx *ctx, const char *name, int64_t unix_ms)
{
    char *own = unique(ctx, name);
    if (!own)
        return error_no_memory(&ctx->error);
    enum pawl_err result = wait_once(ctx, own, until((double)unix_ms), slept, NULL);
    free(own);
    return result;
}

enum pawl_err pawl_ctx_sleep(struct pawl_ctx *ctx, const char *name, int64_t ms)
{
    return pawl_ctx_sleep_until(ctx, name, (int64_t)(server_now(ctx) + (double)ms));
}

static json_t *signalled(const json_t *resumed, const char *signal)
{
    if (strcmp(member_text(resumed, "kind"), "signal") == 0)
        return json_pack("{s:{s:O?, s:O?}}", "output", "payload",
                         json_object_get(resumed, "payload"), "sent_at",
                         json_object_get(resumed, "sent_at"));
    char *message = format("No signal %s in time", signal);
    json_t *outcome = json_pack("{s:{s:s, s:s*, s:b}}", "error", "code", "TIMED_OUT", "message",
                                message, "retryable", 0);
    free(message);
    return outcome;
}

enum pawl_err pawl_ctx_wait_signal(struct pawl_ctx *ctx, const char *signal, int64_t timeout_ms,
                                   json_t **ret_payload)
{
    char *name = format("signal:%s", signal), *own = name ? unique(ctx, name) : NULL;
    free(name);
    if (!own)
        return error_no_memory(&ctx->error);
    json_t *wait = timeout_ms > 0 ? until(server_now(ctx) + (double)timeout_ms) : json_object();
    set_text(wait, "signal", signal);
    enum pawl_err result = wait_once(ctx, own, wait, signalled, signal);
    if (result == PAWL_OK)
        result = stored(ctx, own, PAWL_ERR_TIMED_OUT, "payload", ret_payload);
    free(own);
    return result;
}

static json_t *decided(const json_t *resumed, const char *what)
{
    (void)what;
    const char *decision = member_text(resumed, "decision");
    json_t *by = json_object_get(resumed, "by"), *reason = json_object_get(resumed, "reason");
    if (strcmp(decision, "approved") == 0)
        return json_pack("{s:{s:O?, s:O?, s:O?}}", "output", "by", by, "reason", reason, "content",
                         json_object_get(resumed, "content"));
    const char *code = strcmp(decision, "expired") == 0 ? "APPROVAL_EXPIRED" : "APPROVAL_REJECTED";
    return json_pack("{s:{s:s, s:s, s:b, s:{s:O?}}}", "error", "code", code, "message",
                     member_text(resumed, "reason"), "retryable", 0, "details", "by", by);
}

enum pawl_err pawl_ctx_approval(struct pawl_ctx *ctx, const char *name, const char *prompt,
                                json_t **ret_answer, const char *options, ...)
{
    char problem[256] = "";
    va_list args;
    va_start(args, options);
    json_t *question = pack_options(options, args, problem, sizeof problem);
    va_end(args);
    if (!question)
        return pawl_ctx_fail(ctx, "BAD_ARGUMENT", problem, false);
    set_text(question, "prompt", prompt);
    json_t *wait = json_pack("{s:o}", "approval", question);
    char *own = unique(ctx, name);
    if (!own) {
        json_decref(wait);
        return error_no_memory(&ctx->error);
    }
    enum pawl_err result = wait_once(ctx, own, wait, decided, NULL);
    if (result == PAWL_OK)
        result = stored(ctx, own, PAWL_ERR_REJECTED, NULL, ret_answer);
    free(own);
    return result;
}

/* --- child runs --- */

static json_t *child_outcome(const json_t *run)
{
    if (strcmp(member_text(run, "status"), "succeeded") == 0)
        return json_pack("{s:O?}", "output", json_object_get(run, "output"));
    const char *id = member_text(run, "id"), *status = member_text(run, "status");
    char *message = format("Run %s of %s ended as %s", id, member_text(run, "workflow_id"), status);
    json_t *outcome =
        json_pack("{s:{s:s, s:s*, s:b, s:{s:s, s:s, s:O?}}}", "error", "code", "CHILD_FAILED",
                  "message", message, "retryable", 0, "details", "run_id", id, "status", status,
                  "error", json_object_get(run, "error"));
    free(message);
    return outcome;
}

/* A run that takes longer is asked for again when a quarter of its age has passed. */
static enum pawl_err wait_for_child(struct pawl_ctx *ctx, const char *name, const json_t *run)
{
    int64_t created_ms = 0;
    double now_ms = server_now(ctx);
    time_parse(member_text(run, "created_at"), &created_ms);
    return suspend(ctx, name,
                   until(now_ms + fmin(60000, fmax(1000, (now_ms - (double)created_ms) / 4))));
}

static enum pawl_err run_child(struct pawl_ctx *ctx, const char *name, const char *workflow_id,
                               json_t *input)
{
    enum pawl_err result = check(ctx);
    if (result != PAWL_OK) {
        json_decref(input);
        return result;
    }
    char *key = format("%s:%s", ctx->held->job_id, name);
    json_t *args = json_pack("{s:s, s:o, s:s*, s:i}", "workflow_id", workflow_id, "input", input,
                             "idempotency_key", key, "wait_ms", CHILD_WAIT_MS);
    free(key);
    json_t *started = NULL;
    result = pawl_call(ctx->worker->client, "startRun", args, &started, &ctx->error);
    if (result != PAWL_OK)
        return result;
    const json_t *run = json_object_get(started, "run");
    result =
        run_is_over(run) ? store(ctx, name, child_outcome(run)) : wait_for_child(ctx, name, run);
    json_decref(started);
    return result;
}

enum pawl_err pawl_ctx_run_workflow(struct pawl_ctx *ctx, const char *workflow_id, json_t *input,
                                    json_t **ret_output)
{
    char *own = input ? unique(ctx, workflow_id) : NULL;
    if (!own) {
        json_decref(input);
        return pawl_ctx_fail(ctx, "BAD_ARGUMENT",
                             "The input is NULL, not JSON: json_null() says none", false);
    }
    enum pawl_err result = PAWL_OK;
    if (knows(ctx, own))
        json_decref(input);
    else
        result = run_child(ctx, own, workflow_id, input);
    if (result == PAWL_OK)
        result = stored(ctx, own, PAWL_ERR_STEP_FAILED, NULL, ret_output);
    free(own);
    return result;
}
