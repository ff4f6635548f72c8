/* libpawl: client, worker and durable functions for pawl, the workflow control plane in which every
 * retry is safe.
 *
 * Values are those of jansson. One rule says who owns them: what you pass in, you give away, also
 * when the call fails (json_incref it first to keep it); what you get through a ret_ parameter is
 * yours to json_decref. A handler's input and payload are only lent. ret_ parameters are written
 * only on success and may be NULL where that is said.
 *
 * Functions return PAWL_OK or the kind of the error. A `struct pawl_error` that is given besides,
 * or NULL, gets the rest; begin with `{0}` and end with pawl_error_clear.
 *
 * The examples are run by the library's tests. In them `client` and `err` are what their names say,
 * `ctx` is the context of a handler, and check() stops the program if something is not true.
 */
#ifndef PAWL_H
#define PAWL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PAWL_API __attribute__((visibility("default")))
#define PAWL_MUST_CHECK __attribute__((warn_unused_result))
#else
#define PAWL_API
#define PAWL_MUST_CHECK
#endif

/* --- errors --- */

/* What went wrong. The first group are answers of the server: the code of the answer decides,
 * otherwise its HTTP status. */
enum pawl_err {
    PAWL_OK,
    PAWL_ERR_INVALID_REQUEST,   /* the request itself is wrong: 400, 405, 413, 415, 422, … */
    PAWL_ERR_KEY_REUSED,        /* the key belongs to another request; is an INVALID_REQUEST */
    PAWL_ERR_UNAUTHENTICATED,   /* the API key is missing, unknown or revoked */
    PAWL_ERR_FORBIDDEN,         /* the key's role or tenant does not allow this */
    PAWL_ERR_NOT_FOUND,         /* no such object, or another tenant's */
    PAWL_ERR_CONFLICT,          /* the current state does not allow this */
    PAWL_ERR_LEASE_LOST,        /* another worker has the job, or it has ended; is a CONFLICT */
    PAWL_ERR_APPROVAL_CONFLICT, /* decided otherwise, expired or changed; is a CONFLICT */
    PAWL_ERR_LIMIT_REACHED,     /* 429: details has `current` and `limit` */
    PAWL_ERR_UNAVAILABLE,       /* 503 and other 5xx */
    PAWL_ERR_SERVER_FAULT,      /* 500 */
    PAWL_ERR_NO_ANSWER,         /* the outcome is unknown, and the same key is safe */
    PAWL_ERR_RUN_FAILED,        /* pawl_run: the run did not succeed; details is the run */
    PAWL_ERR_WAIT_TIMEOUT,      /* the wait was shorter than the run, which continues */
    PAWL_ERR_WEBHOOK_INVALID,   /* code says why, such as "signature_mismatch" */
    PAWL_ERR_JOB_FAILED,        /* a handler failed: pawl_ctx_fail */
    PAWL_ERR_STEP_FAILED,       /* a step or a child run has failed for good */
    PAWL_ERR_REJECTED,          /* an approval was rejected or expired; an update was rejected */
    PAWL_ERR_TIMED_OUT,         /* pawl_ctx_wait_signal: no signal came in time */
    PAWL_ERR_SUSPENDED,         /* the job waits: return this at once, nothing has failed */
    PAWL_ERR_CANCELLED,         /* the job is gone or the worker stops: return this at once */
    PAWL_ERR_BAD_ARGUMENT,      /* refused by the library; nothing was sent */
    PAWL_ERR_NO_MEMORY,
};

/* One error with everything that is known of it. */
struct pawl_error {
    enum pawl_err kind;
    int status;           /* HTTP status, or 0 */
    bool retryable;       /* the same request may succeed later */
    double retry_after_s; /* that the server asks to wait, or 0 */
    char code[128];       /* the stable code, such as "MAX_CONCURRENT_RUNS" */
    char message[1024];   /* for people */
    char trace_id[64];
    json_t *details; /* all members of the problem, or NULL */
};

/* Release what an error holds and make it {0} again.
 *
 * Example:
 *     struct pawl_error error = {0};
 *     check(pawl_call(client, "getRun", json_pack("{s:s}", "run_id", "no-such"), NULL, &error) ==
 *         PAWL_ERR_NOT_FOUND);
 *     check(strcmp(error.code, "RUN_NOT_FOUND") == 0 && error.status == 404 && !error.retryable);
 *     pawl_error_clear(&error);
 *     check(error.details == NULL);
 */
PAWL_API void pawl_error_clear(struct pawl_error *error);

/* The name of a kind, as the other libraries call it.
 *
 * Example:
 *     check(strcmp(pawl_err_name(PAWL_ERR_LIMIT_REACHED), "LimitReached") == 0);
 */
PAWL_API const char *pawl_err_name(enum pawl_err err);

/* Whether `err` is of that kind or of a more special one.
 *
 * Example:
 *     check(pawl_err_is(PAWL_ERR_LEASE_LOST, PAWL_ERR_CONFLICT));
 *     check(!pawl_err_is(PAWL_ERR_CONFLICT, PAWL_ERR_LEASE_LOST));
 */
PAWL_API bool pawl_err_is(enum pawl_err err, enum pawl_err kind);

/* --- retries --- */

enum pawl_jitter {
    PAWL_JITTER_FULL,         /* a random time up to a bound that grows with each attempt */
    PAWL_JITTER_EQUAL,        /* between half the bound and the bound */
    PAWL_JITTER_DECORRELATED, /* between the base and three times the last one */
    PAWL_JITTER_NONE,         /* exactly the bound: truncated exponential */
};

/* How calls are retried. All attempts of a call have the same key. */
struct pawl_retry {
    enum pawl_jitter jitter;
    double base_ms, max_ms, multiplier;
    int max_attempts;   /* 0: no limit */
    double deadline_ms; /* for all attempts together; 0: none */
};
/* clang-format off */
#define PAWL_RETRY_DEFAULT {PAWL_JITTER_FULL, 200, 10000, 2, 0, 60000}
/* clang-format on */

/* How many retries all calls of a client may spend: one token each, and a share of one back for
 * each success. */
struct pawl_budget {
    double tokens, max, per_success;
};
/* clang-format off */
#define PAWL_BUDGET_DEFAULT {10, 10, 0.1}
/* clang-format on */

/* --- the client --- */

/* All members may be 0. Texts default to PAWL_URL, PAWL_API_KEY, PAWL_TENANT and PAWL_ACTOR, the
 * URL to http://127.0.0.1:7295. PAWL_CA_FILE names certificates to trust besides the system's. */
struct pawl_client_options {
    const char *url, *api_key, *tenant, *actor;
    const struct pawl_retry *retry;   /* NULL: PAWL_RETRY_DEFAULT */
    const struct pawl_budget *budget; /* NULL: PAWL_BUDGET_DEFAULT */
};

struct pawl_client;

/* A client, for any number of threads. `options` may be NULL.
 *
 * Example:
 *     struct pawl_retry patient = PAWL_RETRY_DEFAULT;
 *     patient.deadline_ms = 300000;
 *     struct pawl_client *own = NULL;
 *     check(pawl_client_new(&(struct pawl_client_options){.retry = &patient}, &own, &err) ==
 *         PAWL_OK);
 *     pawl_client_free(own);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_client_new(const struct pawl_client_options *options,
                                                       struct pawl_client **ret_client,
                                                       struct pawl_error *error);

/* Close its connections. Workers that use it keep it until they end. NULL is fine.
 *
 * Example:
 *     pawl_client_free(NULL);
 */
PAWL_API void pawl_client_free(struct pawl_client *client);

/* Any operation of the API by its operationId (docs/openapi.yaml). `args` has path parameters,
 * query parameters and members of the body by their names; `idempotency_key` is the key of a change
 * and `if_match` the version for If-Match. The definition of putWorkflow and validateWorkflow is
 * the argument `definition`, the body of putTenant is `settings`. `args` may be NULL, `ret_result`
 * too.
 *
 * Example:
 *     json_t *key = NULL;
 *     check(pawl_call(client, "createKey", json_pack("{s:s, s:s}", "role", "worker", "label",
 *         "farm"), &key, &err) == PAWL_OK);
 *     check(json_string_value(json_object_get(key, "key")) != NULL);
 *     json_decref(key);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_call(struct pawl_client *client, const char *operation,
                                                 json_t *args, json_t **ret_result,
                                                 struct pawl_error *error);

/* What a list or a stream hands to the caller, one after the other; the item is lent. False ends
 * it. */
typedef bool pawl_item_fn(json_t *item, void *user);

/* All items of a list operation, page by page.
 *
 * Example:
 *     int found = 0;
 *     check(pawl_list(client, "listWorkflows", NULL, count, &found, &err) == PAWL_OK);
 *     check(found > 0);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_list(struct pawl_client *client, const char *operation,
                                                 json_t *args, pawl_item_fn *each, void *user,
                                                 struct pawl_error *error);

/* What a start may have besides its input. All members may be 0. */
struct pawl_start_options {
    const char *key; /* derive it from your own ids: "order-789"; without one the client makes a key
                        for this call */
    json_t *labels;  /* given away like every value */
    int priority;
    const char *at_limit; /* "reject", "queue", "cancel_oldest" or "coalesce" */
    const char *start_at; /* RFC 3339 */
    int64_t wait_ms;      /* answer when the run is over, or after this time */
};

/* Start a run. The same key again gives the same run, however often and however late it is sent.
 * The result is
 * {"run_id", "created", "run"}. `input` is any JSON value, json_null() for none. `options` and
 * `ret_started` may be NULL.
 *
 * Example:
 *     json_t *first = NULL, *again = NULL;
 *     struct pawl_start_options options = {.key = "greet-ada"};
 *     check(pawl_start(client, "greet", json_pack("{s:s}", "name", "Ada"), &options, &first, &err)
 *         == PAWL_OK);
 *     check(pawl_start(client, "greet", json_pack("{s:s}", "name", "Ada"), &options, &again, &err)
 *         == PAWL_OK);
 *     check(json_equal(json_object_get(first, "run_id"), json_object_get(again, "run_id")));
 *     check(json_is_true(json_object_get(first, "created")) && json_is_false(json_object_get(again,
 *         "created")));
 *     json_decref(first);
 *     json_decref(again);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_start(struct pawl_client *client,
                                                  const char *workflow_id, json_t *input,
                                                  const struct pawl_start_options *options,
                                                  json_t **ret_started, struct pawl_error *error);

/* Start a run, wait for its end and return its output. PAWL_ERR_RUN_FAILED if it does not succeed;
 * PAWL_ERR_WAIT_TIMEOUT after `timeout_ms` (0: none), the run then continues. `wait_ms` of the
 * options is not used.
 *
 * Example:
 *     json_t *output = NULL;
 *     check(pawl_run(client, "greet", json_pack("{s:s}", "name", "Ada"), NULL, 30000, &output,
 *         &err) == PAWL_OK);
 *     check(strcmp(json_string_value(json_object_get(output, "text")), "Hello, Ada!") == 0);
 *     json_decref(output);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_run(struct pawl_client *client, const char *workflow_id,
                                                json_t *input,
                                                const struct pawl_start_options *options,
                                                int64_t timeout_ms, json_t **ret_output,
                                                struct pawl_error *error);

/* Wait for the end of a run and return it, whatever its status. PAWL_ERR_WAIT_TIMEOUT after
 * `timeout_ms` (0: none).
 *
 * Example:
 *     json_t *run = NULL;
 *     check(pawl_wait(client, started("greet"), 30000, &run, &err) == PAWL_OK);
 *     check(strcmp(json_string_value(json_object_get(run, "status")), "succeeded") == 0);
 *     json_decref(run);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_wait(struct pawl_client *client, const char *run_id,
                                                 int64_t timeout_ms, json_t **ret_run,
                                                 struct pawl_error *error);

/* The run's events as they happen, from the first one after `after` (0: the first) to its end. A
 * broken connection is resumed: no event is missed or comes twice.
 *
 * Example:
 *     int events = 0;
 *     check(pawl_watch(client, started("greet"), 0, count, &events, &err) == PAWL_OK);
 *     check(events >= 2);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_watch(struct pawl_client *client, const char *run_id,
                                                  int64_t after, pawl_item_fn *each, void *user,
                                                  struct pawl_error *error);

/* All events of the tenant as they happen, until `each` returns false. `types` filters
 * ("run.*,approval.decided"), or NULL. `after` is the `cursor` of the last event that you have
 * seen, "0-0" the beginning, NULL now. An event of type "reset" says that events after your cursor
 * are no longer kept: read the current state.
 *
 * Example:
 *     int events = 0;
 *     started("greet");
 *     check(pawl_events(client, "run.created", "0-0", first_only, &events, &err) == PAWL_OK);
 *     check(events == 1);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_events(struct pawl_client *client, const char *types,
                                                   const char *after, pawl_item_fn *each,
                                                   void *user, struct pawl_error *error);

/* Send a signal to a run. It completes a step, or a pawl_ctx_wait_signal, of that name, now or
 * later. With a `dedup_key` the same signal counts once, even if several senders report it; NULL
 * for none. `ret_result` may be NULL.
 *
 * Example:
 *     json_t *sent = NULL;
 *     check(pawl_signal(client, started("wait"), "paid", json_pack("{s:i}", "amount", 30),
 *         "payment-17", &sent, &err) == PAWL_OK);
 *     check(json_is_false(json_object_get(sent, "duplicate")));
 *     json_decref(sent);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_signal(struct pawl_client *client, const char *run_id,
                                                   const char *name, json_t *payload,
                                                   const char *dedup_key, json_t **ret_result,
                                                   struct pawl_error *error);

/* Cancel a run and its open jobs; `reason` and `ret_run` may be NULL. Cancelling a cancelled run
 * changes nothing.
 *
 * Example:
 *     check(pawl_cancel(client, started("wait"), "no longer needed", NULL, &err) == PAWL_OK);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_cancel(struct pawl_client *client, const char *run_id,
                                                   const char *reason, json_t **ret_run,
                                                   struct pawl_error *error);

/* Approve. Safe to repeat: the first decision is returned again. The opposite of an earlier
 * decision is PAWL_ERR_APPROVAL_CONFLICT. With `expected_hash` (the `content_hash` that was shown)
 * nothing else can be approved. `reason`, `expected_hash` and `ret_decision` may be NULL.
 *
 * Example:
 *     const char *job_id = pending_approval();
 *     check(pawl_approve(client, job_id, "fine", NULL, NULL, &err) == PAWL_OK);
 *     check(pawl_reject(client, job_id, NULL, NULL, NULL, &err) == PAWL_ERR_APPROVAL_CONFLICT);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_approve(struct pawl_client *client, const char *job_id,
                                                    const char *reason, const char *expected_hash,
                                                    json_t **ret_decision,
                                                    struct pawl_error *error);

/* Reject. Safe to repeat, like pawl_approve.
 *
 * Example:
 *     json_t *decision = NULL;
 *     check(pawl_reject(client, pending_approval(), "too much", NULL, &decision, &err) == PAWL_OK);
 *     check(strcmp(json_string_value(json_object_get(decision, "status")), "rejected") == 0);
 *     json_decref(decision);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_reject(struct pawl_client *client, const char *job_id,
                                                   const char *reason, const char *expected_hash,
                                                   json_t **ret_decision, struct pawl_error *error);

/* Store a workflow, such as pawl_workflow_json makes it. An equal definition makes no new version.
 * `ret_result` may be NULL.
 *
 * Example:
 *     json_t *nap = json_pack("{s:s, s:[{s:s, s:s, s:i}]}", "id", "nap", "steps", "name", "nap",
 *         "type", "sleep", "duration_ms", 1);
 *     check(pawl_apply(client, nap, NULL, &err) == PAWL_OK);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_apply(struct pawl_client *client, json_t *definition,
                                                  json_t **ret_result, struct pawl_error *error);

/* Send a signal to an entity; the first one creates it. The same `dedup_key` (or NULL) again
 * changes nothing. `ret_result` may be NULL.
 *
 * Example:
 *     json_t *points = json_pack("{s:i}", "points", 10);
 *     check(pawl_signal_entity(client, "account", "ada", "add", points, "order-789", NULL, &err) ==
 *         PAWL_OK);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_signal_entity(
    struct pawl_client *client, const char *type, const char *id, const char *name, json_t *payload,
    const char *dedup_key, json_t **ret_result, struct pawl_error *error);

/* Send a signal to an entity and wait up to `wait_ms` for what its handler makes of it. The same
 * `dedup_key` gets the same outcome. The result has `status`, and `result` or `error`.
 *
 * Example:
 *     json_t *update = NULL, *points = json_pack("{s:i}", "points", 3);
 *     check(pawl_update_entity(client, "account", "eve", "add", points, "spend-1", 0, &update,
 *         &err) == PAWL_OK);
 *     check(strcmp(json_string_value(json_object_get(update, "status")), "waiting") == 0);
 *     json_decref(update);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_update_entity(
    struct pawl_client *client, const char *type, const char *id, const char *name, json_t *payload,
    const char *dedup_key, int64_t wait_ms, json_t **ret_update, struct pawl_error *error);

/* An entity with its state. Needs no worker.
 *
 * Example:
 *     json_t *bob = NULL;
 *     check(pawl_get_entity(client, "account", "no-one", &bob, &err) == PAWL_ERR_NOT_FOUND);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_get_entity(struct pawl_client *client, const char *type,
                                                       const char *id, json_t **ret_entity,
                                                       struct pawl_error *error);

/* --- workflow definitions --- */

struct pawl_workflow;

/* A definition that is being built. `options` is a format of json_pack for one object, or NULL:
 * description, input_schema, timeout_s, concurrency, signals, and `queue`, the queue of tasks that
 * name no other. Returns NULL only without memory. Steps run in the order they are added, unless
 * one of them has `needs`. A mistake is kept for pawl_workflow_json.
 *
 * Example:
 *     struct pawl_workflow *order = pawl_workflow_new("order", "{s:i}", "timeout_s", 3600);
 *     pawl_workflow_task(order, "charge", "cards.charge", "{s:i, s:s}", "retry", 5, "compensate",
 *         "cards.refund");
 *     pawl_workflow_approval(order, "ok", "Ship order ${input.id}?", "{s:s}", "when",
 *         "input.amount > 100");
 *     pawl_workflow_task(order, "ship", "parcels.ship", "{s:{s:o}}", "input", "charge",
 *         PAWL_REF("steps", "charge", "output", "id"));
 *     json_t *definition = NULL;
 *     check(pawl_workflow_json(order, &definition, &err) == PAWL_OK);
 *     check(pawl_apply(client, definition, NULL, &err) == PAWL_OK);
 *     pawl_workflow_free(order);
 */
PAWL_API struct pawl_workflow *pawl_workflow_new(const char *id, const char *options, ...);

/* Example:
 *     pawl_workflow_free(NULL);
 */
PAWL_API void pawl_workflow_free(struct pawl_workflow *workflow);

/* A task for a worker. Options of every step, here and below: needs, when, for_each, max_parallel,
 * retry (or the number of attempts), timeout_ms, on_error; of a task besides queue, input,
 * requires_approval, compensate (or the handler's name).
 *
 * Example:
 *     struct pawl_workflow *pay = pawl_workflow_new("pay", NULL);
 *     pawl_workflow_task(pay, "charge", "cards.charge", "{s:s, s:i}", "queue", "payments", "retry",
 *         3);
 *     pawl_workflow_free(pay);
 */
PAWL_API void pawl_workflow_task(struct pawl_workflow *workflow, const char *name,
                                 const char *handler, const char *options, ...);

/* A call that the server makes, with the job's id as its idempotency key. Options besides: headers,
 * body, compensate.
 *
 * Example:
 *     struct pawl_workflow *tell = pawl_workflow_new("tell", NULL);
 *     pawl_workflow_http(tell, "post", "POST", "https://example.com/orders", "{s:{s:i}}", "body",
 *         "id", 1);
 *     pawl_workflow_free(tell);
 */
PAWL_API void pawl_workflow_http(struct pawl_workflow *workflow, const char *name,
                                 const char *method, const char *url, const char *options, ...);

/* Ask a person before the run continues. Options besides: content, approvers, expires_s, on_expire,
 * remind_every_s, escalation.
 *
 * Example:
 *     struct pawl_workflow *pay = pawl_workflow_new("pay", NULL);
 *     pawl_workflow_approval(pay, "ok", "Pay?", "{s:{s:i}, s:i}", "approvers", "count", 2,
 *         "expires_s", 86400);
 *     pawl_workflow_free(pay);
 */
PAWL_API void pawl_workflow_approval(struct pawl_workflow *workflow, const char *name,
                                     const char *prompt, const char *options, ...);

/* Any other step, or one of the above, with all of its members in the options: sleep (duration_ms
 * or until), wait_signal (signal, wait_for), transform (output), emit (event, payload), workflow
 * (workflow_id, version, input).
 *
 * Example:
 *     struct pawl_workflow *later = pawl_workflow_new("later", NULL);
 *     pawl_workflow_step(later, "sleep", "a-day", "{s:i}", "duration_ms", 86400000);
 *     pawl_workflow_step(later, "transform", "text", "{s:{s:s}}", "output", "text",
 *         "Hello, ${input.name}!");
 *     pawl_workflow_free(later);
 */
PAWL_API void pawl_workflow_step(struct pawl_workflow *workflow, const char *type, const char *name,
                                 const char *options, ...);

/* The definition as JSON, or the first mistake that was made.
 *
 * Example:
 *     struct pawl_workflow *twice = pawl_workflow_new("twice", NULL);
 *     pawl_workflow_task(twice, "a", "a", NULL);
 *     pawl_workflow_task(twice, "a", "a", NULL);
 *     json_t *definition = NULL;
 *     check(pawl_workflow_json(twice, &definition, &err) == PAWL_ERR_BAD_ARGUMENT);
 *     check(strcmp(err.message, "Workflow twice already has a step \"a\"") == 0);
 *     pawl_workflow_free(twice);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_workflow_json(const struct pawl_workflow *workflow,
                                                          json_t **ret_definition,
                                                          struct pawl_error *error);

/* A value that exists when the run does: PAWL_REF("steps", "charge", "output", "id") is the text
 * "${steps.charge.output.id}". Names that an expression could not have are quoted. In `when` and
 * `for_each`, which are expressions, it loses its ${}.
 *
 * Example:
 *     json_t *reference = PAWL_REF("input", "first name");
 *     check(strcmp(json_string_value(reference), "${input[\"first name\"]}") == 0);
 *     json_decref(reference);
 */
PAWL_API json_t *pawl_ref(const char *const names[]);
#define PAWL_REF(...) pawl_ref((const char *const[]){__VA_ARGS__, NULL})

/* --- workers --- */

/* All members may be 0; these are the defaults. */
struct pawl_worker_options {
    const char *const *queues; /* NULL-terminated; {"default"} */
    int concurrency;           /* handlers at a time, each in a thread of its own; 10 */
    int64_t lease_ms;          /* the server waits this long for a heartbeat; 30000 */
    int64_t grace_ms;          /* how long a stopping worker waits for its handlers; 30000 */
    const char *worker_id;     /* host, process and a random part */
    bool no_apply;             /* do not store the workflows and entity types that are registered */
    void (*log)(void *user, const char *text); /* one line for each thing that goes wrong; none */
    void *log_user;
};

struct pawl_worker;
struct pawl_ctx;
struct pawl_entity_type;
struct pawl_entity;

/* The handler of a task. It returns PAWL_OK, with its output (NULL is null), or an error: what a
 * function of the context returned, or pawl_ctx_fail. PAWL_ERR_SUSPENDED and PAWL_ERR_CANCELLED
 * must be returned at once; whatever the handler does after them, nothing is reported and no step
 * runs. */
typedef enum pawl_err pawl_task_fn(struct pawl_ctx *ctx, json_t *input, void *user,
                                   json_t **ret_output);

/* A worker: claims jobs, calls handlers, sends heartbeats every third of the lease, reports results
 * together and claims the next jobs in the same call. `options` may be NULL.
 *
 * Example:
 *     struct pawl_worker *worker = NULL;
 *     struct pawl_worker_options options = {.queues = (const char *const[]){"docs", NULL},
 *         .concurrency = 4};
 *     check(pawl_worker_new(client, &options, &worker, &err) == PAWL_OK);
 *     pawl_worker_task(worker, "shout", shout, NULL);
 *     check(pawl_worker_start(worker, &err) == PAWL_OK);
 *     json_t *output = NULL;
 *     check(pawl_run(client, "shout", json_pack("{s:s}", "text", "hello"), NULL, 30000, &output,
 *         &err) == PAWL_OK);
 *     check(strcmp(json_string_value(output), "HELLO") == 0);
 *     json_decref(output);
 *     pawl_worker_stop(worker);
 *     check(pawl_worker_join(worker, &err) == PAWL_OK);
 *     pawl_worker_free(worker);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_worker_new(struct pawl_client *client,
                                                       const struct pawl_worker_options *options,
                                                       struct pawl_worker **ret_worker,
                                                       struct pawl_error *error);

/* Free a worker that was not started or has been joined. Handlers that have not ended by then keep
 * what they need.
 *
 * Example:
 *     pawl_worker_free(NULL);
 */
PAWL_API void pawl_worker_free(struct pawl_worker *worker);

/* Register the handler of a task; `user` is passed to it. Before the worker is started.
 *
 * Example:
 *     struct pawl_worker *worker = NULL;
 *     check(pawl_worker_new(client, NULL, &worker, &err) == PAWL_OK);
 *     pawl_worker_task(worker, "cards.charge", shout, NULL);
 *     pawl_worker_free(worker);
 */
PAWL_API void pawl_worker_task(struct pawl_worker *worker, const char *name, pawl_task_fn *handler,
                               void *user);

/* Register a durable function as a whole workflow. The worker stores the workflow when it starts,
 * so that pawl_start(client, id, …) runs the function. `options` are those of pawl_workflow_new,
 * and `retry`, which counts crashes of workers and failures outside of steps (20 attempts);
 * finished steps are kept.
 *
 * Example:
 *     struct pawl_worker *worker = NULL;
 *     check(pawl_worker_new(client, NULL, &worker, &err) == PAWL_OK);
 *     pawl_worker_workflow(worker, "order", shout, NULL, "{s:i}", "timeout_s", 86400);
 *     pawl_worker_free(worker);
 */
PAWL_API void pawl_worker_workflow(struct pawl_worker *worker, const char *id,
                                   pawl_task_fn *function, void *user, const char *options, ...);

/* Serve until SIGTERM, SIGINT or pawl_worker_stop: start, wait, stop, join. One worker of a process
 * at a time.
 *
 * Example:
 *     struct pawl_worker *worker = NULL;
 *     check(pawl_worker_new(client, &(struct pawl_worker_options){.concurrency = 1}, &worker, &err)
 *         == PAWL_OK);
 *     pawl_worker_task(worker, "stop", stop_worker, worker);
 *     check(pawl_start(client, "stop", json_null(), NULL, NULL, &err) == PAWL_OK);
 *     check(pawl_worker_run(worker, &err) == PAWL_OK);
 *     pawl_worker_free(worker);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_worker_run(struct pawl_worker *worker,
                                                       struct pawl_error *error);

/* Begin to serve in threads of its own. A worker serves once.
 *
 * Example:
 *     struct pawl_worker *worker = NULL;
 *     check(pawl_worker_new(client, NULL, &worker, &err) == PAWL_OK);
 *     check(pawl_worker_start(worker, &err) == PAWL_OK);
 *     check(pawl_worker_start(worker, &err) == PAWL_ERR_BAD_ARGUMENT);
 *     pawl_worker_stop(worker);
 *     check(pawl_worker_join(worker, &err) == PAWL_OK);
 *     pawl_worker_free(worker);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_worker_start(struct pawl_worker *worker,
                                                         struct pawl_error *error);

/* Claim no more jobs. Safe from any thread, also from a handler; not from a signal handler.
 *
 * Example:
 *     struct pawl_worker *worker = NULL;
 *     check(pawl_worker_new(client, NULL, &worker, &err) == PAWL_OK);
 *     pawl_worker_stop(worker);
 *     pawl_worker_free(worker);
 */
PAWL_API void pawl_worker_stop(struct pawl_worker *worker);

/* After pawl_worker_stop: wait until the handlers have ended and their results are reported, for up
 * to `grace_ms`. A handler that has not ended by then sees pawl_ctx_cancelled and is left alone;
 * its lease expires and another worker gets the job. Returns the error that stopped the worker,
 * such as a wrong API key.
 *
 * Example:
 *     struct pawl_client *stranger = NULL;
 *     struct pawl_worker *worker = NULL;
 *     struct pawl_client_options options = {.tenant = "no tenant"};
 *     check(pawl_client_new(&options, &stranger, &err) == PAWL_OK);
 *     check(pawl_worker_new(stranger, NULL, &worker, &err) == PAWL_OK);
 *     check(pawl_worker_start(worker, &err) == PAWL_OK);
 *     check(pawl_worker_join(worker, &err) == PAWL_ERR_INVALID_REQUEST);
 *     pawl_worker_free(worker);
 *     pawl_client_free(stranger);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_worker_join(struct pawl_worker *worker,
                                                        struct pawl_error *error);

/* --- in a handler --- */

/* A context belongs to the thread of its handler; pawl_ctx_cancelled and pawl_ctx_progress may be
 * called from any. */

/* The claimed job as JSON: job_id, run_id, workflow_id, step, handler, attempt, tenant, traceparent
 * and so on. Lent.
 *
 * Example:
 *     check(json_integer_value(json_object_get(pawl_ctx_job(ctx), "attempt")) == 1);
 */
PAWL_API const json_t *pawl_ctx_job(const struct pawl_ctx *ctx);

/* The idempotency key for side effects: the job's id, the same in every attempt; inside a step, the
 * job's id and the step's name.
 *
 * Example:
 *     const char *job_id = json_string_value(json_object_get(pawl_ctx_job(ctx), "job_id"));
 *     check(strcmp(pawl_ctx_key(ctx), job_id) == 0);
 */
PAWL_API const char *pawl_ctx_key(const struct pawl_ctx *ctx);

/* Whether to stop: the run was cancelled, the lease is lost, or the worker's grace is over. Look at
 * it in long loops.
 *
 * Example:
 *     if (pawl_ctx_cancelled(ctx))
 *         return PAWL_ERR_CANCELLED;
 */
PAWL_API bool pawl_ctx_cancelled(const struct pawl_ctx *ctx);

/* Show this JSON value with the job, from the next heartbeat on.
 *
 * Example:
 *     pawl_ctx_progress(ctx, json_pack("{s:i}", "percent", 50));
 */
PAWL_API void pawl_ctx_progress(struct pawl_ctx *ctx, json_t *value);

/* Replace the run's state when this job completes.
 *
 * Example:
 *     pawl_ctx_set_state(ctx, json_pack("{s:i}", "seen", 1));
 */
PAWL_API void pawl_ctx_set_state(struct pawl_ctx *ctx, json_t *state);

/* Fail: `return pawl_ctx_fail(ctx, …);`, in a handler or in a step. Not retryable: no further
 * attempt.
 *
 * Example:
 *     check(pawl_ctx_fail(ctx, "CARD_DECLINED", "no funds", false) == PAWL_ERR_JOB_FAILED);
 */
PAWL_API enum pawl_err pawl_ctx_fail(struct pawl_ctx *ctx, const char *code, const char *message,
                                     bool retryable);

/* Fail with an error of the client: `return pawl_ctx_raise(ctx, &error);`. It keeps its code and
 * retryable.
 *
 * Example:
 *     check(pawl_cancel(client, "no-such", NULL, NULL, &err) == PAWL_ERR_NOT_FOUND);
 *     check(pawl_ctx_raise(ctx, &err) == PAWL_ERR_NOT_FOUND);
 */
PAWL_API enum pawl_err pawl_ctx_raise(struct pawl_ctx *ctx, const struct pawl_error *error);

/* The last error of this context: why a step failed, who rejected.
 *
 * Example:
 *     check(pawl_ctx_error(ctx)->kind == PAWL_OK);
 */
PAWL_API const struct pawl_error *pawl_ctx_error(const struct pawl_ctx *ctx);

/* --- durable functions --- */

/* The operations below make a handler durable. Their results are stored under their names, and a
 * function that runs again, after a wait or a crash, gets them back. A name that is used again in a
 * loop is numbered: the order must be the same each time. Each ret_ parameter may be NULL. */

/* The work of a step. `data` is what was given to pawl_ctx_step. */
typedef enum pawl_err pawl_step_fn(struct pawl_ctx *ctx, void *data, json_t **ret_output);

/* When a step is tried again. 0 stands for the default. */
struct pawl_step_retry {
    int max_attempts;                  /* 3 */
    double backoff_ms, max_backoff_ms; /* 1000, 300000 */
    double multiplier;                 /* 2 */
    enum pawl_jitter jitter;
    const char *const *non_retryable; /* codes, NULL-terminated */
};

/* Call the function once and store what it returns. When it has failed for the last time, or with
 * an error that is not retryable, the error is stored and PAWL_ERR_STEP_FAILED returned: now, and
 * whenever the handler runs again.
 *
 * Example:
 *     json_t *charge = NULL;
 *     int amount = 30;
 *     enum pawl_err result = pawl_ctx_step(ctx, "charge", charge_card, &amount, NULL, &charge);
 *     if (result != PAWL_OK)
 *         return result;
 *     check(json_integer_value(json_object_get(charge, "amount")) == 30);
 *     json_decref(charge);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_ctx_step(struct pawl_ctx *ctx, const char *name,
                                                     pawl_step_fn *function, void *data,
                                                     const struct pawl_step_retry *retry,
                                                     json_t **ret_output);

/* Wait without holding a worker: for a second or a year.
 *
 * Example:
 *     enum pawl_err result = pawl_ctx_sleep(ctx, "a moment", 10);
 *     if (result != PAWL_OK)
 *         return result;
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_ctx_sleep(struct pawl_ctx *ctx, const char *name,
                                                      int64_t ms);

/* Wait until a time, in milliseconds since 1970.
 *
 * Example:
 *     enum pawl_err result = pawl_ctx_sleep_until(ctx, "the new millennium", 978307200000);
 *     if (result != PAWL_OK)
 *         return result;
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_ctx_sleep_until(struct pawl_ctx *ctx, const char *name,
                                                            int64_t unix_ms);

/* Wait for a signal of the run and get its payload. PAWL_ERR_TIMED_OUT after `timeout_ms` (0:
 * none).
 *
 * Example:
 *     json_t *payment = NULL;
 *     enum pawl_err result = pawl_ctx_wait_signal(ctx, "paid", 259200000, &payment);
 *     if (result != PAWL_OK)
 *         return result;
 *     check(json_integer_value(json_object_get(payment, "amount")) == 30);
 *     json_decref(payment);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_ctx_wait_signal(struct pawl_ctx *ctx,
                                                            const char *signal, int64_t timeout_ms,
                                                            json_t **ret_payload);

/* Ask a person. The result is {"by", "reason", "content"}, the content as approved.
 * PAWL_ERR_REJECTED if the answer is no (code APPROVAL_REJECTED) or nobody answers in time
 * (APPROVAL_EXPIRED). `options` is a format of json_pack, or NULL: content, approvers, expires_s,
 * remind_every_s, escalation.
 *
 * Example:
 *     json_t *answer = NULL;
 *     enum pawl_err result = pawl_ctx_approval(ctx, "ok", "Refund 30?", &answer, "{s:{s:i}}",
 *         "content", "amount", 30);
 *     if (result == PAWL_ERR_REJECTED)
 *         return pawl_ctx_fail(ctx, "NOT_REFUNDED", pawl_ctx_error(ctx)->message, false);
 *     if (result != PAWL_OK)
 *         return result;
 *     check(json_integer_value(json_object_get(json_object_get(answer, "content"), "amount")) ==
 *         30);
 *     json_decref(answer);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_ctx_approval(struct pawl_ctx *ctx, const char *name,
                                                         const char *prompt, json_t **ret_answer,
                                                         const char *options, ...);

/* Run another workflow once and get its output. PAWL_ERR_STEP_FAILED (CHILD_FAILED) if it does not
 * succeed. The worker's key needs the role operator for this.
 *
 * Example:
 *     json_t *output = NULL;
 *     enum pawl_err result = pawl_ctx_run_workflow(ctx, "greet", json_pack("{s:s}", "name", "Ada"),
 *         &output);
 *     if (result != PAWL_OK)
 *         return result;
 *     check(strcmp(json_string_value(json_object_get(output, "text")), "Hello, Ada!") == 0);
 *     json_decref(output);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_ctx_run_workflow(struct pawl_ctx *ctx,
                                                             const char *workflow_id, json_t *input,
                                                             json_t **ret_output);

/* --- entities --- */

/* The handler of a signal, update or timer. PAWL_OK, with a result for updates (NULL is null);
 * pawl_entity_reject; or pawl_entity_fail, which fails the whole call. */
typedef enum pawl_err pawl_entity_fn(struct pawl_entity *entity, json_t *payload, void *user,
                                     json_t **ret_result);

/* Register an entity type; the worker stores it when it starts. `initial` is the state of a new
 * entity. `options` is a format of json_pack, or NULL: version, dedup_window_s, dedup_max_keys,
 * rollover_events, keep_generations, max_inbox, max_batch, retry. The result belongs to the worker;
 * NULL only without memory.
 *
 * Example:
 *     struct pawl_worker *worker = NULL;
 *     check(pawl_worker_new(client, NULL, &worker, &err) == PAWL_OK);
 *     struct pawl_entity_type *account = pawl_worker_entity(worker, "account", json_pack("{s:i}",
 *         "points", 0), NULL);
 *     pawl_entity_on(account, "add", add_points, NULL);
 *     pawl_entity_on_timer(account, "idle", add_points, NULL);
 *     pawl_entity_on_migrate(account, add_points, NULL);
 *     pawl_worker_free(worker);
 */
PAWL_API struct pawl_entity_type *pawl_worker_entity(struct pawl_worker *worker, const char *type,
                                                     json_t *initial, const char *options, ...);

/* The handler of a signal or update.
 *
 * Example:
 *     struct pawl_worker *worker = NULL;
 *     check(pawl_worker_new(client, NULL, &worker, &err) == PAWL_OK);
 *     pawl_entity_on(pawl_worker_entity(worker, "account", json_object(), NULL), "add", add_points,
 *         NULL);
 *     pawl_worker_free(worker);
 */
PAWL_API void pawl_entity_on(struct pawl_entity_type *type, const char *name,
                             pawl_entity_fn *handler, void *user);

/* The handler of a timer.
 *
 * Example:
 *     struct pawl_worker *worker = NULL;
 *     check(pawl_worker_new(client, NULL, &worker, &err) == PAWL_OK);
 *     pawl_entity_on_timer(pawl_worker_entity(worker, "account", json_object(), NULL), "idle",
 *         add_points, NULL);
 *     pawl_worker_free(worker);
 */
PAWL_API void pawl_entity_on_timer(struct pawl_entity_type *type, const char *name,
                                   pawl_entity_fn *handler, void *user);

/* The handler that brings the state to this version; its payload is the version that the state has.
 *
 * Example:
 *     struct pawl_worker *worker = NULL;
 *     check(pawl_worker_new(client, NULL, &worker, &err) == PAWL_OK);
 *     pawl_entity_on_migrate(pawl_worker_entity(worker, "account", json_object(), NULL),
 *         add_points, NULL);
 *     pawl_worker_free(worker);
 */
PAWL_API void pawl_entity_on_migrate(struct pawl_entity_type *type, pawl_entity_fn *handler,
                                     void *user);

/* In the examples below `entity` is an account whose handler runs. */

/* The entity's id.
 *
 * Example:
 *     check(strcmp(pawl_entity_id(entity), "ada") == 0);
 */
PAWL_API const char *pawl_entity_id(const struct pawl_entity *entity);

/* The idempotency key for side effects of this signal: the same in every attempt.
 *
 * Example:
 *     check(strncmp(pawl_entity_key(entity), "account/ada:", 12) == 0);
 */
PAWL_API const char *pawl_entity_key(const struct pawl_entity *entity);

/* The state. Change it in place, or replace it with pawl_entity_set_state; it is stored when all
 * handlers of the call have returned. Lent.
 *
 * Example:
 *     json_t *state = pawl_entity_state(entity);
 *     json_object_set_new(state, "points", json_integer(json_integer_value(json_object_get(state,
 *         "points")) + 10));
 */
PAWL_API json_t *pawl_entity_state(struct pawl_entity *entity);

/* Example:
 *     pawl_entity_set_state(entity, json_pack("{s:i}", "points", 0));
 */
PAWL_API void pawl_entity_set_state(struct pawl_entity *entity, json_t *state);

/* Set or replace a timer; `payload` may be NULL.
 *
 * Example:
 *     pawl_entity_set_timer(entity, "idle", 31536000000, NULL);
 */
PAWL_API void pawl_entity_set_timer(struct pawl_entity *entity, const char *name, int64_t after_ms,
                                    json_t *payload);

/* The same for a time, in milliseconds since 1970.
 *
 * Example:
 *     pawl_entity_set_timer_at(entity, "party", 4102444800000, NULL);
 */
PAWL_API void pawl_entity_set_timer_at(struct pawl_entity *entity, const char *name,
                                       int64_t unix_ms, json_t *payload);

/* Cancel a timer, if there is one.
 *
 * Example:
 *     pawl_entity_cancel_timer(entity, "idle");
 */
PAWL_API void pawl_entity_cancel_timer(struct pawl_entity *entity, const char *name);

/* Publish an event on streams, webhooks and the bus; `payload` may be NULL.
 *
 * Example:
 *     pawl_entity_emit(entity, "account.gold", json_pack("{s:s}", "id", pawl_entity_id(entity)));
 */
PAWL_API void pawl_entity_emit(struct pawl_entity *entity, const char *event, json_t *payload);

/* Start a run soon after this call, exactly once. Of the options key and labels count; they may be
 * NULL.
 *
 * Example:
 *     pawl_entity_start(entity, "greet", json_pack("{s:s}", "name", "Ada"), NULL);
 */
PAWL_API void pawl_entity_start(struct pawl_entity *entity, const char *workflow_id, json_t *input,
                                const struct pawl_start_options *options);

/* Expect no more signals; the next one begins with a new state.
 *
 * Example:
 *     pawl_entity_finish(entity);
 */
PAWL_API void pawl_entity_finish(struct pawl_entity *entity);

/* Reject an update: `return pawl_entity_reject(entity, …);`. What the handler changed before is
 * undone.
 *
 * Example:
 *     check(pawl_entity_reject(entity, "TOO_FEW", "there are 90") == PAWL_ERR_REJECTED);
 */
PAWL_API enum pawl_err pawl_entity_reject(struct pawl_entity *entity, const char *code,
                                          const char *message);

/* Fail the whole call: `return pawl_entity_fail(entity, …);`. Nothing is stored; it is tried again
 * if it is retryable.
 *
 * Example:
 *     check(pawl_entity_fail(entity, "BANK_IS_CLOSED", "", true) == PAWL_ERR_JOB_FAILED);
 */
PAWL_API enum pawl_err pawl_entity_fail(struct pawl_entity *entity, const char *code,
                                        const char *message, bool retryable);

/* --- webhooks --- */

/* A header of a message; names may be in any case. An array of them ends with {NULL, NULL}. */
struct pawl_header {
    const char *name, *value;
};

/* The event (a CloudEvents object) of a message that pawl signed; PAWL_ERR_WEBHOOK_INVALID for any
 * other. `body` is the raw body as it arrived. `now_s` is the time, 0 for the clock's;
 * `tolerance_s` how much older or newer a message may be, 0 for 300. The event's `id` is the same
 * each time it is delivered: remember it.
 *
 * Example:
 *     const char *secret = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0", *body =
 *         "{\"type\":\"run.succeeded\"}";
 *     char signature[PAWL_SIGNATURE_SIZE];
 *     check(pawl_webhook_sign(secret, "run:4", 1767225600, body, strlen(body), signature, &err) ==
 *         PAWL_OK);
 *     struct pawl_header headers[] = {{"webhook-id", "run:4"}, {"webhook-timestamp", "1767225600"},
 *         {"webhook-signature", signature}, {NULL, NULL}};
 *     json_t *event = NULL;
 *     check(pawl_webhook_verify(secret, headers, body, strlen(body), 1767225600, 0, &event, &err)
 *         == PAWL_OK);
 *     check(strcmp(json_string_value(json_object_get(event, "type")), "run.succeeded") == 0);
 *     json_decref(event);
 *     check(pawl_webhook_verify(secret, headers, "{}", 2, 1767225600, 0, &event, &err) ==
 *         PAWL_ERR_WEBHOOK_INVALID);
 *     check(strcmp(err.code, "signature_mismatch") == 0);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_webhook_verify(
    const char *secret, const struct pawl_header *headers, const void *body, size_t size,
    int64_t now_s, int64_t tolerance_s, json_t **ret_event, struct pawl_error *error);

#define PAWL_SIGNATURE_SIZE 64

/* The webhook-signature that pawl would send: for tests of your receiver.
 *
 * Example:
 *     char signature[PAWL_SIGNATURE_SIZE];
 *     check(pawl_webhook_sign("whsec_c2VjcmV0", "run:4", 1767225600, "{}", 2, signature, &err) ==
 *         PAWL_OK);
 *     check(strncmp(signature, "v1,", 3) == 0);
 */
PAWL_API PAWL_MUST_CHECK enum pawl_err pawl_webhook_sign(const char *secret, const char *message_id,
                                                         int64_t timestamp_s, const void *body,
                                                         size_t size,
                                                         char signature[PAWL_SIGNATURE_SIZE],
                                                         struct pawl_error *error);

/* The version of the library, such as "0.1.0".
 *
 * Example:
 *     check(strchr(pawl_version(), '.') != NULL);
 */
PAWL_API const char *pawl_version(void);

#ifdef __cplusplus
}
#endif
#endif
