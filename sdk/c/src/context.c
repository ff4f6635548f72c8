#include "context.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

bool context_begin(struct pawl_ctx *ctx, struct pawl_worker *worker, struct held *held)
{
    const struct ports *ports = &worker->client->ports;
    const json_t *job = held->job;
    json_t *outputs = json_object_get(job, "checkpoints"),
           *errors = json_object_get(job, "checkpoint_errors");
    *ctx =
        (struct pawl_ctx){.worker = worker,
                          .held = held,
                          .key = format("%s", held->job_id),
                          .uses = json_object(),
                          .outputs = json_is_object(outputs) ? json_copy(outputs) : json_object(),
                          .errors = json_is_object(errors) ? json_copy(errors) : json_object(),
                          .resumed = json_object_get(job, "resumed_by"),
                          .clock_ms = ports->now_ms(ports->at)};
    int64_t expires_ms = 0;
    time_parse(member_text(job, "lease_expires_at"), &expires_ms);
    ctx->server_ms = expires_ms - worker->state.lease_ms;
    return ctx->key && ctx->outputs && ctx->errors && ctx->uses;
}

void context_end(struct pawl_ctx *ctx)
{
    free(ctx->key);
    json_decref(ctx->outputs);
    json_decref(ctx->errors);
    json_decref(ctx->uses);
    json_decref(ctx->new_state);
    pawl_error_clear(&ctx->error);
}

const json_t *pawl_ctx_job(const struct pawl_ctx *ctx)
{
    return ctx->held->job;
}

const char *pawl_ctx_key(const struct pawl_ctx *ctx)
{
    return ctx->key;
}

bool pawl_ctx_cancelled(const struct pawl_ctx *ctx)
{
    worker_lock(ctx->worker);
    bool cancelled = ctx->held->cancelled || ctx->worker->grace_over;
    worker_unlock(ctx->worker);
    return cancelled;
}

void pawl_ctx_progress(struct pawl_ctx *ctx, json_t *value)
{
    json_t *own = json_deep_copy(value);
    json_decref(value);
    worker_lock(ctx->worker);
    json_decref(ctx->held->progress);
    ctx->held->progress = own;
    worker_unlock(ctx->worker);
}

void pawl_ctx_set_state(struct pawl_ctx *ctx, json_t *state)
{
    json_decref(ctx->new_state);
    ctx->new_state = state;
}

enum pawl_err pawl_ctx_fail(struct pawl_ctx *ctx, const char *code, const char *message,
                            bool retryable)
{
    error_set(&ctx->error, PAWL_ERR_JOB_FAILED, "%s", message ? message : "");
    copy_text(ctx->error.code, sizeof ctx->error.code, code);
    ctx->error.retryable = retryable;
    return PAWL_ERR_JOB_FAILED;
}

enum pawl_err pawl_ctx_raise(struct pawl_ctx *ctx, const struct pawl_error *error)
{
    error_copy(&ctx->error, error);
    return error->kind;
}

const struct pawl_error *pawl_ctx_error(const struct pawl_ctx *ctx)
{
    return &ctx->error;
}

json_t *context_failure(const struct pawl_ctx *ctx, enum pawl_err result)
{
    if (ctx->error.kind == result)
        return error_wire(&ctx->error);
    return json_pack("{s:s, s:s, s:b}", "code", pawl_err_name(result), "message", "", "retryable",
                     1);
}
