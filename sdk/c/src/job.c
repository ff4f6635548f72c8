/* Executing a job: which handler, and what its result is on the wire. */
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "entity.h"
#include "error.h"

#define RELEASE_TIMEOUT_MS 30000

static const struct task *find_task(const struct pawl_worker *worker, const char *name)
{
    const struct task *task = worker->tasks;
    while (task && (!task->name || strcmp(task->name, name) != 0))
        task = task->next;
    return task;
}

static const struct pawl_entity_type *find_type(const struct pawl_worker *worker, const char *name)
{
    const struct pawl_entity_type *type = worker->entities;
    while (type && (!type->type || strcmp(type->type, name) != 0))
        type = type->next;
    return type;
}

static enum pawl_err no_handler(struct pawl_ctx *ctx, const char *name)
{
    char *message = format("This worker has no handler named %s", name);
    enum pawl_err result = pawl_ctx_fail(ctx, "NO_HANDLER", message, true);
    free(message);
    return result;
}

static enum pawl_err call_handler(struct pawl_ctx *ctx, json_t **ret_output)
{
    const json_t *job = ctx->held->job;
    const char *name = member_text(job, "handler");
    json_t *input = json_object_get(job, "input");
    if (strcmp(member_text(job, "kind"), "entity") == 0) {
        const struct pawl_entity_type *type = find_type(ctx->worker, name);
        return type ? entity_handle(type, input, ctx->held->job_id, ret_output, &ctx->error)
                    : no_handler(ctx, name);
    }
    const struct task *task = find_task(ctx->worker, name);
    return task ? task->handler(ctx, input ? input : json_null(), task->user, ret_output)
                : no_handler(ctx, name);
}

/* The item of a report. The output is given away. */
static json_t *result_of(struct pawl_ctx *ctx, enum pawl_err result, json_t *output)
{
    if (result != PAWL_OK) {
        json_decref(output);
        return json_pack("{s:o}", "error", context_failure(ctx, result));
    }
    json_t *item = json_pack("{s:o?}", "output", output);
    if (ctx->new_state)
        json_object_set(item, "state", ctx->new_state);
    char *text = json_text(item);
    bool is_json = text != NULL;
    free(text);
    if (is_json)
        return item;
    json_decref(item);
    pawl_ctx_fail(ctx, "OUTPUT_NOT_JSON", "The output has text that is not UTF-8", false);
    return json_pack("{s:o}", "error", error_wire(&ctx->error));
}

/* Gives a job back; if that fails, its lease expires. */
static void release(struct pawl_worker *worker, const struct held *held)
{
    struct pawl_error error = {0};
    struct call_rule once = {.retry = {.max_attempts = 1}};
    json_t *body = json_pack("{s:s}", "lease_token", held->token);
    struct request request = job_request(worker->client, held->job_id, "release", body);
    request.timeout_ms = RELEASE_TIMEOUT_MS;
    if (client_perform(worker->client, &request, &once, NULL, &error) != PAWL_OK)
        worker_log(worker, "Job %s was not released: %s %s", held->job_id, error.code,
                   error.message);
    pawl_error_clear(&error);
}

void worker_run_job(struct pawl_worker *worker, struct held *held)
{
    struct pawl_ctx ctx;
    json_t *output = NULL, *item = NULL;
    enum pawl_err result =
        context_begin(&ctx, worker, held) ? call_handler(&ctx, &output) : PAWL_ERR_NO_MEMORY;
    worker_lock(worker);
    bool gone = held->cancelled || ctx.suspended;
    worker_unlock(worker);
    if (!gone && result == PAWL_ERR_CANCELLED)
        release(worker, held);
    else if (!gone)
        item = result_of(&ctx, result, json_incref(output));
    json_decref(output);
    worker_lock(worker);
    state_finish(&worker->state, held, item);
    worker_unlock(worker);
    context_end(&ctx);
}
