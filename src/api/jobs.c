/* Routes of workers: claim, complete, fail, heartbeat, release, batches; dead letters. */
#include "api/params.h"
#include "api/routes.h"
#include "domain/workflow/definition_fields.h"

/* --- claims --- */

static enum err check_queue(struct fields *f, struct str queue)
{
    if (queue.len > NAME_MAX_LEN || !str_is_name(queue))
        fields_fault(f, "queues", "must be names of queues");
    else if (str_starts_with(queue, STR(OWN_QUEUES)))
        fields_fault(f, "queues", "must not name pawl's own queues, which begin with " OWN_QUEUES);
    return f->err;
}

static void take_queues(struct call *c, struct fields *f, const struct json *list, void *input)
{
    static const struct str DEFAULT = {"default", 7};
    struct claim_input *in = input;
    in->queues = &DEFAULT;
    in->queue_count = 1;
    if (list == NULL)
        return;
    size_t count = json_length(list);
    if (count == 0) {
        fields_fault(f, "queues", "must name at least one queue");
        return;
    }
    struct str *queues = call_alloc(c, count * sizeof(*queues));
    if (queues == NULL) {
        f->err = c->op.problem.err;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        queues[i] = json_text_of(json_element(list, i));
        if (check_queue(f, queues[i]) != ERR_OK)
            return;
    }
    if (count == 1 && str_eq(queues[0], DEFAULT))
        fields_default(f, "queues");
    in->queues = queues;
    in->queue_count = count;
}

#define WORKER_AND_LEASE(type, at)                                                 \
    BODY("worker_id", PARAM_TEXT, .required = true, .min = 1, .max = NAME_MAX_LEN, \
         INTO(type, at worker_id)),                                                \
        BODY("lease_ms", PARAM_INT, .min = LEASE_MS_MIN, .max = LEASE_MS_MAX,      \
             .initial = LEASE_MS_DEFAULT, INTO(type, at lease_ms))

static const struct param CLAIM[] = {
    WORKER_AND_LEASE(struct claim_input, ),
    BODY("queues", PARAM_ARRAY, .min = 1, .max = CLAIM_QUEUES_MAX, .take = take_queues),
    BODY("max", PARAM_INT, .min = 1, .max = CLAIM_MAX, .initial = 1, INTO(struct claim_input, max)),
    BODY("wait_ms", PARAM_INT, .max = CLAIM_WAIT_MS_MAX, INTO_CALL(op.wait_ms)),
};

static const struct param CLAIM_JOB[] = {
    PATH_UUID("job_id", ERR_JOB_NOT_FOUND, struct claim_job_input, job_id),
    WORKER_AND_LEASE(struct claim_job_input, claim.),
};

/* --- results --- */

#define LEASE_TOKEN(type) \
    BODY("lease_token", PARAM_TEXT, .required = true, .max = TEXT_MAX, INTO(type, lease_token))

static const struct param JOB_ERROR[] = {
    BODY("code", PARAM_TEXT, .required = true, .max = NAME_MAX_LEN,
         INTO(struct finish_job_input, code)),
    BODY("message", PARAM_TEXT, .max = JOB_OUTPUT_MAX),
    BODY("retryable", PARAM_BOOL, .initial = true, INTO(struct finish_job_input, retryable)),
    BODY("details", PARAM_JSON, .null_counts = true),
};

#define OUTPUT_AND_STATE                                                      \
    BODY("output", PARAM_JSON, .max = JOB_OUTPUT_MAX, .initial_text = "null", \
         INTO(struct finish_job_input, output)),                              \
        BODY("state", PARAM_OBJECT, .max = JOB_OUTPUT_MAX, INTO(struct finish_job_input, state))

static const struct param COMPLETE[] = {
    PATH_UUID("job_id", ERR_JOB_NOT_FOUND, struct finish_job_input, job_id),
    LEASE_TOKEN(struct finish_job_input),
    OUTPUT_AND_STATE,
};

static const struct param FAIL[] = {
    PATH_UUID("job_id", ERR_JOB_NOT_FOUND, struct finish_job_input, job_id),
    LEASE_TOKEN(struct finish_job_input),
    BODY("error", PARAM_OBJECT, .required = true, MEMBERS(JOB_ERROR),
         INTO(struct finish_job_input, error)),
};

static enum err prepare_fail(struct call *c, void *input)
{
    (void)c;
    ((struct finish_job_input *)input)->failed = true;
    return ERR_OK;
}

/* --- batches --- */

/* A result, or with `error` a failure. */
static const struct param FINISH_ITEM[] = {
    BODY("job_id", PARAM_UUID, .required = true, INTO(struct finish_job_input, job_id)),
    LEASE_TOKEN(struct finish_job_input),
    OUTPUT_AND_STATE,
    BODY("error", PARAM_OBJECT, MEMBERS(JOB_ERROR), INTO(struct finish_job_input, error)),
};

static void take_item(struct call *c, struct fields *f, const struct json *item,
                      struct finish_job_input *in)
{
    if (!json_is(item, JSON_KIND_OBJECT)) {
        fields_fault(f, "items", "must be objects");
        return;
    }
    params_read_members(c, f, item, FINISH_ITEM, ARRAY_LEN(FINISH_ITEM), in);
    in->failed = in->error.ptr != NULL;
    if (in->failed && json_member(item, STR("output")) != NULL)
        fields_fault(f, "error", "an item has an output or an error, not both");
}

static void take_items(struct call *c, struct fields *f, const struct json *list, void *input)
{
    struct finish_jobs_input *in = input;
    in->count = json_length(list);
    struct finish_job_input *items = call_alloc(c, MAX(in->count, (size_t)1) * sizeof(*items));
    if (items == NULL) {
        f->err = c->op.problem.err;
        return;
    }
    in->items = items;
    for (size_t i = 0; i < in->count && f->err == ERR_OK; i++)
        take_item(c, f, json_element(list, i), &items[i]);
}

static void take_claim(struct call *c, struct fields *f, const struct json *object, void *input)
{
    if (object == NULL)
        return;
    struct claim_input *claim = call_alloc(c, sizeof(*claim));
    if (claim == NULL) {
        f->err = c->op.problem.err;
        return;
    }
    params_read_members(c, f, object, CLAIM, ARRAY_LEN(CLAIM), claim);
    ((struct finish_jobs_input *)input)->claim = claim;
    c->op.wait_ms = 0; /* the results must not wait for the next jobs */
}

static const struct param FINISH_JOBS[] = {
    BODY("items", PARAM_ARRAY, .required = true, .max = FINISH_ITEMS_MAX, MEMBERS(FINISH_ITEM),
         .take = take_items),
    BODY("claim", PARAM_OBJECT, MEMBERS(CLAIM), .take = take_claim),
};

/* --- leases --- */

static const struct param HEARTBEAT[] = {
    PATH_UUID("job_id", ERR_JOB_NOT_FOUND, struct heartbeat_input, job_id),
    LEASE_TOKEN(struct heartbeat_input),
    BODY("progress", PARAM_JSON, .max = HEARTBEAT_NOTE_MAX, .null_counts = true,
         INTO(struct heartbeat_input, note)),
};

/* --- durable functions --- */

static const struct param CHECKPOINT_ERROR[] = {
    BODY("code", PARAM_TEXT, .required = true, .max = NAME_MAX_LEN),
    BODY("message", PARAM_TEXT, .max = JOB_OUTPUT_MAX),
    BODY("retryable", PARAM_BOOL, .initial = true, INTO(struct checkpoint_input, retryable)),
    BODY("details", PARAM_JSON, .null_counts = true),
};

static const struct param CHECKPOINT[] = {
    PATH_UUID("job_id", ERR_JOB_NOT_FOUND, struct checkpoint_input, job_id),
    LEASE_TOKEN(struct checkpoint_input),
    BODY("name", PARAM_TEXT, .required = true, .min = 1, .max = CHECKPOINT_NAME_MAX,
         INTO(struct checkpoint_input, name)),
    BODY("output", PARAM_JSON, .max = JOB_OUTPUT_MAX, .null_counts = true,
         INTO(struct checkpoint_input, output)),
    BODY("error", PARAM_OBJECT, .max = JOB_OUTPUT_MAX, MEMBERS(CHECKPOINT_ERROR),
         INTO(struct checkpoint_input, error)),
};

static enum err prepare_checkpoint(struct call *c, void *input)
{
    struct checkpoint_input *in = input;
    if (in->output.ptr != NULL && in->error.ptr != NULL)
        return problem_set(&c->op.problem, ERR_FIELD_INVALID,
                           "error: a checkpoint has an output or an error, not both");
    if (in->output.ptr == NULL && in->error.ptr == NULL)
        in->output = STR("null");
    return ERR_OK;
}

/* All that is wrong with a question, as with a definition. */
static void take_question(struct call *c, struct fields *f, const struct json *ask, void *input)
{
    struct fault_list faults;
    struct buf *out = &c->op.problem.faults;
    (void)input;
    if (ask == NULL)
        return;
    buf_put_char(out, '[');
    fault_list_init(&faults, out);
    definition_check_question(ask, &faults);
    fault_list_release(&faults);
    buf_put_char(out, ']');
    bool whole = buf_ok(out);
    if (whole && faults.count > 0) {
        fields_fault(f, "approval", "is not a question that can be asked; see errors");
        return;
    }
    buf_clear(out);
    if (!whole)
        f->err = call_no_memory(c);
}

static const struct param SUSPEND[] = {
    PATH_UUID("job_id", ERR_JOB_NOT_FOUND, struct suspend_input, job_id),
    LEASE_TOKEN(struct suspend_input),
    BODY("name", PARAM_TEXT, .min = 1, .max = CHECKPOINT_NAME_MAX,
         INTO(struct suspend_input, name)),
    BODY("until", PARAM_TIME, .initial = INT64_MIN, INTO(struct suspend_input, until)),
    BODY("signal", PARAM_NAME, .max = NAME_MAX_LEN, INTO(struct suspend_input, signal)),
    BODY("approval", PARAM_OBJECT, .max = JOB_OUTPUT_MAX, .take = take_question,
         INTO(struct suspend_input, approval)),
};

static enum err prepare_suspend(struct call *c, void *input)
{
    struct suspend_input *in = input;
    bool signal = in->signal.ptr != NULL;
    bool approval = in->approval.ptr != NULL;
    in->until = in->until == INT64_MIN ? -1 : MAX(in->until, (int64_t)0);
    if (in->until < 0 && !signal && !approval)
        return problem_set(&c->op.problem, ERR_FIELD_INVALID,
                           "Say what the job waits for: until, signal or approval");
    if (approval && (signal || in->until >= 0))
        return problem_set(&c->op.problem, ERR_FIELD_INVALID,
                           "approval: cannot be combined with signal or until; it has expires_s");
    return ERR_OK;
}

/* --- one job, and lists --- */

static const struct param JOB[] = {
    PATH_UUID("job_id", ERR_JOB_NOT_FOUND, struct get_job_input, job_id),
};

static const struct param LIST[] = {
    QUERY_PAGE(struct list_dead_input),
};

static const char *boolean_name(unsigned value)
{
    return value != 0 ? "true" : "false";
}

static const struct param LIST_QUEUES[] = {
    QUERY("without_workers", PARAM_ENUM, WORDS(boolean_name, 2),
          INTO(struct list_queues_input, without_workers)),
    QUERY_PAGE(struct list_queues_input),
};

const struct route JOB_ROUTES[] = {
    {"POST", "/api/v1/jobs/claim", MAY_WORK, ROUTE_HANDS_OUT, &UC_CLAIM_JOBS,
     TAKES(struct claim_input, CLAIM), .join = JOIN_CLAIM},
    {"POST", "/api/v1/jobs/{}/claim", MAY_WORK, ROUTE_HANDS_OUT, &UC_CLAIM_JOB,
     TAKES(struct claim_job_input, CLAIM_JOB), .join = JOIN_FIND},
    {"POST", "/api/v1/jobs/{}/complete", MAY_WORK, .use_case = &UC_FINISH_JOB,
     TAKES(struct finish_job_input, COMPLETE), .join = JOIN_FIND},
    {"POST", "/api/v1/jobs/{}/fail", MAY_WORK, .use_case = &UC_FINISH_JOB,
     TAKES(struct finish_job_input, FAIL), .prepare = prepare_fail, .join = JOIN_FIND},
    {"POST", "/api/v1/jobs/{}/heartbeat", MAY_WORK, .use_case = &UC_HEARTBEAT,
     TAKES(struct heartbeat_input, HEARTBEAT), .join = JOIN_FIND},
    {"POST", "/api/v1/jobs/{}/release", MAY_WORK, .use_case = &UC_RELEASE_JOB,
     TAKES(struct heartbeat_input, HEARTBEAT), .join = JOIN_FIND},
    {"POST", "/api/v1/jobs/{}/checkpoints", MAY_WORK, .use_case = &UC_CHECKPOINT_JOB,
     TAKES(struct checkpoint_input, CHECKPOINT), .prepare = prepare_checkpoint, .join = JOIN_FIND},
    {"POST", "/api/v1/jobs/{}/suspend", MAY_WORK, .use_case = &UC_SUSPEND_JOB,
     TAKES(struct suspend_input, SUSPEND), .prepare = prepare_suspend, .join = JOIN_FIND},
    {"POST", "/api/v1/jobs:complete", MAY_WORK, ROUTE_HANDS_OUT, &UC_FINISH_JOBS,
     TAKES(struct finish_jobs_input, FINISH_JOBS), .join = JOIN_BATCH},
    {"GET", "/api/v1/dead-letters", MAY_READ, .use_case = &UC_LIST_DEAD,
     TAKES(struct list_dead_input, LIST)},
    {"POST", "/api/v1/dead-letters/{}/retry", MAY_RUN, ROUTE_ANY_TENANT, &UC_RETRY_DEAD,
     TAKES(struct get_job_input, JOB), .join = JOIN_FIND},
    {"DELETE", "/api/v1/dead-letters/{}", MAY_RUN, ROUTE_ANY_TENANT, &UC_DROP_DEAD,
     TAKES(struct get_job_input, JOB), .join = JOIN_FIND},
    {"GET", "/api/v1/queues", MAY_READ, .use_case = &UC_LIST_QUEUES,
     TAKES(struct list_queues_input, LIST_QUEUES)},
    {"GET", "/api/v1/workers", MAY_READ, .use_case = &UC_LIST_WORKERS,
     TAKES(struct list_dead_input, LIST)},
    {"GET", "/api/v1/jobs/{}", MAY_READ, ROUTE_ANY_TENANT, &UC_GET_JOB,
     TAKES(struct get_job_input, JOB), .join = JOIN_FIND},
    {.method = NULL},
};
