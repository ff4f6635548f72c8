/* The calls that most programs make, with arguments instead of JSON. */
#include <math.h>
#include <string.h>

#include "client.h"
#include "error.h"
#include "follow.h"

#define SLICE_MS 20000

/* A value that must be there: json_pack returns NULL for a mistake, which must not become "no
 * input". */
static enum pawl_err need(const json_t *value, const char *what, struct pawl_error *error)
{
    if (value)
        return PAWL_OK;
    return error_set(error, PAWL_ERR_BAD_ARGUMENT,
                     "The %s is NULL, not JSON: json_null() says none", what);
}

static json_t *start_args(const char *workflow_id, json_t *input,
                          const struct pawl_start_options *options)
{
    json_t *args = json_pack("{s:s, s:o}", "workflow_id", workflow_id, "input", input);
    if (!options)
        return args;
    set_text(args, "idempotency_key", options->key);
    set_text(args, "at_limit", options->at_limit);
    set_text(args, "start_at", options->start_at);
    set_given(args, "labels", options->labels);
    if (options->priority)
        json_object_set_new(args, "priority", json_integer(options->priority));
    if (options->wait_ms > 0)
        json_object_set_new(args, "wait_ms", json_integer(options->wait_ms));
    return args;
}

static void drop(json_t *input, const struct pawl_start_options *options)
{
    json_decref(input);
    if (options)
        json_decref(options->labels);
}

enum pawl_err pawl_start(struct pawl_client *client, const char *workflow_id, json_t *input,
                         const struct pawl_start_options *options, json_t **ret_started,
                         struct pawl_error *error)
{
    enum pawl_err result = need(input, "input", error);
    if (result != PAWL_OK) {
        drop(input, options);
        return result;
    }
    return pawl_call(client, "startRun", start_args(workflow_id, input, options), ret_started,
                     error);
}

/* How long the next request of pawl_run waits. */
static double slice_of(const struct pawl_client *client, double end_ms)
{
    if (end_ms <= 0)
        return SLICE_MS;
    return fmin(SLICE_MS, fmax(0, floor(end_ms - client->ports.now_ms(client->ports.at))));
}

static enum pawl_err output_of(json_t *run, json_t **ret_output, struct pawl_error *error)
{
    if (strcmp(member_text(run, "status"), "succeeded") == 0) {
        if (ret_output)
            *ret_output = json_incref(json_object_get(run, "output"));
        return PAWL_OK;
    }
    const json_t *why = json_object_get(run, "error");
    error_set(error, PAWL_ERR_RUN_FAILED, "Run %s of %s ended as %s: %s", member_text(run, "id"),
              member_text(run, "workflow_id"), member_text(run, "status"),
              *member_text(why, "code") ? member_text(why, "code") : "no error");
    if (error)
        error->details = json_incref(run);
    return PAWL_ERR_RUN_FAILED;
}

/* Asks with one key, slice by slice, until the run is over or the time is. */
static enum pawl_err run_slices(struct pawl_client *client, json_t *args, double end_ms,
                                json_t **ret_output, struct pawl_error *error)
{
    for (;;) {
        json_t *started = NULL;
        json_object_set_new(args, "wait_ms", json_integer((json_int_t)slice_of(client, end_ms)));
        enum pawl_err result = pawl_call(client, "startRun", json_incref(args), &started, error);
        if (result != PAWL_OK)
            return result;
        json_t *run = json_object_get(started, "run");
        bool over = run_is_over(run),
             late = end_ms > 0 && client->ports.now_ms(client->ports.at) >= end_ms;
        if (over)
            result = output_of(run, ret_output, error);
        else if (late)
            result = error_set(error, PAWL_ERR_WAIT_TIMEOUT, "Run %s is still %s",
                               member_text(run, "id"), member_text(run, "status"));
        json_decref(started);
        if (over || late)
            return result;
    }
}

enum pawl_err pawl_run(struct pawl_client *client, const char *workflow_id, json_t *input,
                       const struct pawl_start_options *options, int64_t timeout_ms,
                       json_t **ret_output, struct pawl_error *error)
{
    enum pawl_err result = need(input, "input", error);
    if (result != PAWL_OK) {
        drop(input, options);
        return result;
    }
    json_t *args = start_args(workflow_id, input, options);
    char key[KEY_SIZE];
    if (!json_object_get(args, "idempotency_key")) {
        client->ports.new_key(client->ports.at, key);
        set_text(args, "idempotency_key", key);
    }
    double end_ms =
        timeout_ms > 0 ? client->ports.now_ms(client->ports.at) + (double)timeout_ms : 0;
    result = run_slices(client, args, end_ms, ret_output, error);
    json_decref(args);
    return result;
}

static enum pawl_err get_run(struct pawl_client *client, const char *run_id, json_t **ret_run,
                             struct pawl_error *error)
{
    return pawl_call(client, "getRun", json_pack("{s:s}", "run_id", run_id), ret_run, error);
}

static bool ignore(json_t *event, void *user)
{
    (void)event;
    (void)user;
    return true;
}

enum pawl_err pawl_wait(struct pawl_client *client, const char *run_id, int64_t timeout_ms,
                        json_t **ret_run, struct pawl_error *error)
{
    json_t *run = NULL;
    double begin_ms = client->ports.now_ms(client->ports.at);
    enum pawl_err result = get_run(client, run_id, &run, error);
    if (result != PAWL_OK)
        return result;
    if (!run_is_over(run)) {
        long long version = json_integer_value(json_object_get(run, "version"));
        struct follow follow = {.client = client,
                                .path = path_of("/runs/", run_id, "/events", (const char *)NULL),
                                .cursor = format("%lld", version),
                                .run_id = run_id,
                                .each = ignore,
                                .deadline_ms = timeout_ms > 0 ? begin_ms + (double)timeout_ms : 0};
        json_decref(run);
        run = NULL;
        result = follow_run(&follow, error);
        if (result == PAWL_ERR_WAIT_TIMEOUT)
            return error_set(error, result, "Run %s is still not over", run_id);
        if (result == PAWL_OK)
            result = get_run(client, run_id, &run, error);
    }
    if (result == PAWL_OK && ret_run)
        *ret_run = run;
    else
        json_decref(run);
    return result;
}

enum pawl_err pawl_watch(struct pawl_client *client, const char *run_id, int64_t after,
                         pawl_item_fn *each, void *user, struct pawl_error *error)
{
    struct follow follow = {.client = client,
                            .path = path_of("/runs/", run_id, "/events", (const char *)NULL),
                            .cursor = after > 0 ? format("%lld", (long long)after) : NULL,
                            .run_id = run_id,
                            .each = each,
                            .user = user};
    return follow_run(&follow, error);
}

enum pawl_err pawl_events(struct pawl_client *client, const char *types, const char *after,
                          pawl_item_fn *each, void *user, struct pawl_error *error)
{
    struct follow follow = {.client = client,
                            .path = path_of("/events", (const char *)NULL),
                            .query = types ? json_pack("{s:s}", "types", types) : NULL,
                            .cursor = after ? format("%s", after) : NULL,
                            .feed = true,
                            .each = each,
                            .user = user};
    return follow_run(&follow, error);
}

/* Calls with a payload: of runs and of entities. */
static enum pawl_err send_payload(struct pawl_client *client, const char *operation, json_t *args,
                                  const char *name, json_t *payload, const char *dedup_key,
                                  json_t **ret_result, struct pawl_error *error)
{
    enum pawl_err result = need(payload, "payload", error);
    if (result != PAWL_OK) {
        json_decref(args);
        return result;
    }
    set_text(args, "name", name);
    set_text(args, "dedup_key", dedup_key);
    json_object_set_new(args, "payload", payload);
    return pawl_call(client, operation, args, ret_result, error);
}

enum pawl_err pawl_signal(struct pawl_client *client, const char *run_id, const char *name,
                          json_t *payload, const char *dedup_key, json_t **ret_result,
                          struct pawl_error *error)
{
    json_t *args = json_pack("{s:s}", "run_id", run_id);
    return send_payload(client, "signalRun", args, name, payload, dedup_key, ret_result, error);
}

enum pawl_err pawl_signal_entity(struct pawl_client *client, const char *type, const char *id,
                                 const char *name, json_t *payload, const char *dedup_key,
                                 json_t **ret_result, struct pawl_error *error)
{
    json_t *args = json_pack("{s:s, s:s}", "type", type, "id", id);
    return send_payload(client, "signalEntity", args, name, payload, dedup_key, ret_result, error);
}

enum pawl_err pawl_update_entity(struct pawl_client *client, const char *type, const char *id,
                                 const char *name, json_t *payload, const char *dedup_key,
                                 int64_t wait_ms, json_t **ret_update, struct pawl_error *error)
{
    json_t *args =
        json_pack("{s:s, s:s, s:I}", "type", type, "id", id, "wait_ms", (json_int_t)wait_ms);
    return send_payload(client, "updateEntity", args, name, payload, dedup_key, ret_update, error);
}

enum pawl_err pawl_get_entity(struct pawl_client *client, const char *type, const char *id,
                              json_t **ret_entity, struct pawl_error *error)
{
    return pawl_call(client, "getEntity", json_pack("{s:s, s:s}", "type", type, "id", id),
                     ret_entity, error);
}

enum pawl_err pawl_cancel(struct pawl_client *client, const char *run_id, const char *reason,
                          json_t **ret_run, struct pawl_error *error)
{
    json_t *args = json_pack("{s:s, s:s*}", "run_id", run_id, "reason", reason);
    return pawl_call(client, "cancelRun", args, ret_run, error);
}

static enum pawl_err decide(struct pawl_client *client, const char *verb, const char *job_id,
                            const char *reason, const char *hash, json_t **ret_decision,
                            struct pawl_error *error)
{
    json_t *args =
        json_pack("{s:s, s:s*, s:s*}", "job_id", job_id, "reason", reason, "expected_hash", hash);
    return pawl_call(client, verb, args, ret_decision, error);
}

enum pawl_err pawl_approve(struct pawl_client *client, const char *job_id, const char *reason,
                           const char *expected_hash, json_t **ret_decision,
                           struct pawl_error *error)
{
    return decide(client, "approve", job_id, reason, expected_hash, ret_decision, error);
}

enum pawl_err pawl_reject(struct pawl_client *client, const char *job_id, const char *reason,
                          const char *expected_hash, json_t **ret_decision,
                          struct pawl_error *error)
{
    return decide(client, "reject", job_id, reason, expected_hash, ret_decision, error);
}

enum pawl_err pawl_apply(struct pawl_client *client, json_t *definition, json_t **ret_result,
                         struct pawl_error *error)
{
    enum pawl_err result = need(definition, "definition", error);
    if (result != PAWL_OK)
        return result;
    return pawl_call(client, "putWorkflow", json_pack("{s:o}", "definition", definition),
                     ret_result, error);
}
