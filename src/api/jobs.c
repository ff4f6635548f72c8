/* Routes of workers: claim, complete, fail, heartbeat, release, batches; dead letters. */
#include "api/call.h"

static enum err read_queues(struct call *c, struct fields *f, struct claim_input *in)
{
    static const struct str DEFAULT = {"default", 7};
    const json_t *list;
    fields_array(f, "queues", CLAIM_QUEUES_MAX, &list);
    in->queues = &DEFAULT;
    in->queue_count = 1;
    if (list == NULL || f->err != ERR_OK)
        return ERR_OK;
    size_t count = json_array_size(list);
    struct str *queues = call_alloc(c, MAX(count, (size_t)1) * sizeof(*queues));
    if (queues == NULL)
        return c->op.problem.err;
    for (size_t i = 0; i < count; i++) {
        queues[i] = json_str(json_array_get(list, i));
        if (queues[i].len > NAME_MAX_LEN || !str_is_name(queues[i]))
            fields_fault(f, "queues", "must hold names of queues");
        else if (str_starts_with(queues[i], STR(OWN_QUEUES)))
            fields_fault(f, "queues", "must not name pawl's own queues");
    }
    if (count == 0)
        fields_fault(f, "queues", "must name at least one queue");
    else if (count == 1 && str_eq(queues[0], DEFAULT))
        fields_default(f, "queues");
    in->queues = queues;
    in->queue_count = count;
    return ERR_OK;
}

static enum err read_claim(struct call *c, const json_t *body, struct claim_input *in)
{
    in->max = 1;
    in->lease_ms = LEASE_MS_DEFAULT;
    struct fields f;
    call_fields(c, &f, body);
    fields_text(&f, "worker_id", NAME_MAX_LEN, &in->worker_id);
    fields_require(&f, "worker_id");
    enum err e = read_queues(c, &f, in);
    fields_int(&f, "max", 1, CLAIM_MAX, &in->max);
    fields_int(&f, "wait_ms", 0, CLAIM_WAIT_MS_MAX, &c->op.wait_ms);
    fields_int(&f, "lease_ms", LEASE_MS_MIN, LEASE_MS_MAX, &in->lease_ms);
    if (f.err == ERR_OK && in->worker_id.len == 0)
        fields_fault(&f, "worker_id", "must not be empty");
    return e == ERR_OK ? fields_end(&f) : e;
}

enum err prepare_claim(struct call *c)
{
    struct claim_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    return read_claim(c, c->body, in);
}

enum err prepare_claim_job(struct call *c)
{
    struct claim_job_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->claim.lease_ms = LEASE_MS_DEFAULT;
    struct fields f;
    call_fields(c, &f, c->body);
    fields_text(&f, "worker_id", NAME_MAX_LEN, &in->claim.worker_id);
    fields_require(&f, "worker_id");
    fields_int(&f, "lease_ms", LEASE_MS_MIN, LEASE_MS_MAX, &in->claim.lease_ms);
    if (f.err == ERR_OK && in->claim.worker_id.len == 0)
        fields_fault(&f, "worker_id", "must not be empty");
    enum err e = fields_end(&f);
    return e == ERR_OK ? call_uuid(c, ERR_JOB_NOT_FOUND, &in->job_id) : e;
}

/* --- results --- */

static enum err read_error(struct call *c, const json_t *error, struct finish_job_input *in)
{
    struct fields f;
    struct str message = STR_NONE;
    const json_t *details;
    in->failed = true;
    in->retryable = true;
    call_fields(c, &f, error);
    fields_text(&f, "code", NAME_MAX_LEN, &in->code);
    fields_text(&f, "message", JOB_OUTPUT_MAX, &message);
    fields_bool(&f, "retryable", &in->retryable);
    fields_any(&f, "details", &details);
    fields_require(&f, "code");
    enum err e = fields_end(&f);
    return e == ERR_OK ? call_json_text(c, error, &in->error) : e;
}

static enum err read_output(struct call *c, const json_t *output, const json_t *state,
                            struct finish_job_input *in)
{
    enum err e = ERR_OK;
    in->output = STR("null");
    if (output != NULL)
        e = call_json_text(c, output, &in->output);
    if (e == ERR_OK && state != NULL)
        e = call_json_text(c, state, &in->state);
    if (e == ERR_OK && (in->output.len > JOB_OUTPUT_MAX || in->state.len > JOB_OUTPUT_MAX))
        return problem_set(&c->op.problem, ERR_BODY_TOO_LARGE,
                           "output and state may have at most %d bytes each", JOB_OUTPUT_MAX);
    return e;
}

static struct finish_job_input *begin_finish(struct call *c, struct fields *f)
{
    struct finish_job_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return NULL;
    c->op.input = in;
    call_fields(c, f, c->body);
    fields_text(f, "lease_token", TEXT_MAX, &in->lease_token);
    fields_require(f, "lease_token");
    return in;
}

enum err prepare_complete(struct call *c)
{
    struct fields f;
    struct finish_job_input *in = begin_finish(c, &f);
    if (in == NULL)
        return c->op.problem.err;
    const json_t *output;
    const json_t *state;
    fields_any(&f, "output", &output);
    if (json_is_null(output))
        fields_default(&f, "output");
    fields_object(&f, "state", &state);
    enum err e = fields_end(&f);
    if (e == ERR_OK)
        e = call_uuid(c, ERR_JOB_NOT_FOUND, &in->job_id);
    return e == ERR_OK ? read_output(c, output, state, in) : e;
}

enum err prepare_fail(struct call *c)
{
    struct fields f;
    struct finish_job_input *in = begin_finish(c, &f);
    if (in == NULL)
        return c->op.problem.err;
    const json_t *error;
    fields_object(&f, "error", &error);
    fields_require(&f, "error");
    enum err e = fields_end(&f);
    if (e == ERR_OK)
        e = call_uuid(c, ERR_JOB_NOT_FOUND, &in->job_id);
    return e == ERR_OK ? read_error(c, error, in) : e;
}

/* One of a batch: a result, or with `error` a failure. */
static enum err read_item(struct call *c, const json_t *item, struct finish_job_input *in)
{
    struct fields f;
    struct str job_id = STR_NONE;
    const json_t *output;
    const json_t *state;
    const json_t *error;
    call_fields(c, &f, item);
    fields_text(&f, "job_id", TEXT_MAX, &job_id);
    fields_text(&f, "lease_token", TEXT_MAX, &in->lease_token);
    fields_any(&f, "output", &output);
    fields_object(&f, "state", &state);
    fields_object(&f, "error", &error);
    fields_require(&f, "job_id");
    fields_require(&f, "lease_token");
    if (f.err == ERR_OK && !uuid_parse(job_id, &in->job_id))
        fields_fault(&f, "job_id", "is no id of a job");
    if (f.err == ERR_OK && error != NULL && output != NULL)
        fields_fault(&f, "error", "an item has an output or an error, not both");
    enum err e = fields_end(&f);
    if (e != ERR_OK)
        return e;
    return error != NULL ? read_error(c, error, in) : read_output(c, output, state, in);
}

enum err prepare_finish_jobs(struct call *c)
{
    struct finish_jobs_input *in = call_alloc(c, sizeof(*in));
    struct claim_input *claim = call_alloc(c, sizeof(*claim));
    if (in == NULL || claim == NULL)
        return c->op.problem.err;
    c->op.input = in;
    const json_t *list;
    const json_t *wanted;
    struct fields f;
    call_fields(c, &f, c->body);
    fields_array(&f, "items", FINISH_ITEMS_MAX, &list);
    fields_require(&f, "items");
    fields_object(&f, "claim", &wanted);
    enum err e = fields_end(&f);
    if (e != ERR_OK)
        return e;
    in->count = json_array_size(list);
    struct finish_job_input *items = call_alloc(c, MAX(in->count, (size_t)1) * sizeof(*items));
    if (items == NULL)
        return c->op.problem.err;
    in->items = items;
    for (size_t i = 0; i < in->count && e == ERR_OK; i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_object(item))
            return problem_set(&c->op.problem, ERR_FIELD_INVALID, "items must hold objects");
        e = read_item(c, item, &items[i]);
    }
    if (e == ERR_OK && wanted != NULL) {
        in->claim = claim;
        e = read_claim(c, wanted, claim);
        c->op.wait_ms = 0; /* the results are not kept waiting */
    }
    return e;
}

enum err prepare_heartbeat(struct call *c)
{
    struct heartbeat_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    const json_t *progress;
    struct fields f;
    call_fields(c, &f, c->body);
    fields_text(&f, "lease_token", TEXT_MAX, &in->lease_token);
    fields_require(&f, "lease_token");
    fields_any(&f, "progress", &progress);
    enum err e = fields_end(&f);
    if (e == ERR_OK)
        e = call_uuid(c, ERR_JOB_NOT_FOUND, &in->job_id);
    if (e == ERR_OK && progress != NULL)
        e = call_json_text(c, progress, &in->note);
    if (e == ERR_OK && in->note.len > HEARTBEAT_NOTE_MAX)
        return problem_set(&c->op.problem, ERR_BODY_TOO_LARGE, "progress may have at most %d bytes",
                           HEARTBEAT_NOTE_MAX);
    return e;
}

enum err prepare_list_dead(struct call *c)
{
    static const char *const KNOWN[] = {"limit", "cursor", NULL};
    struct list_dead_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    enum err e = http_query_only(c->req, KNOWN, &c->op.problem);
    return e == ERR_OK ? call_page(c, &in->limit, &in->cursor) : e;
}

enum err prepare_get_job(struct call *c)
{
    struct get_job_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    return call_uuid(c, ERR_JOB_NOT_FOUND, &in->job_id);
}
