/* Routes of workers: claim, complete, fail, show. */
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
    }
    if (count == 0)
        fields_fault(f, "queues", "must name at least one queue");
    in->queues = queues;
    in->queue_count = count;
    return ERR_OK;
}

enum err prepare_claim(struct call *c)
{
    struct claim_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->max = 1;
    in->lease_ms = LEASE_MS_DEFAULT;
    struct fields f;
    fields_begin(&f, c->body, &c->op.problem);
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

static struct finish_job_input *begin_finish(struct call *c, struct fields *f)
{
    struct finish_job_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return NULL;
    c->op.input = in;
    fields_begin(f, c->body, &c->op.problem);
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
    fields_object(&f, "state", &state);
    enum err e = fields_end(&f);
    in->output = STR("null");
    if (e == ERR_OK)
        e = call_uuid(c, ERR_JOB_NOT_FOUND, &in->job_id);
    if (e == ERR_OK && output != NULL)
        e = call_json_text(c, output, &in->output);
    if (e == ERR_OK && state != NULL)
        e = call_json_text(c, state, &in->state);
    if (e == ERR_OK && (in->output.len > JOB_OUTPUT_MAX || in->state.len > JOB_OUTPUT_MAX))
        return problem_set(&c->op.problem, ERR_BODY_TOO_LARGE,
                           "output and state may have at most %d bytes each", JOB_OUTPUT_MAX);
    return e;
}

enum err prepare_fail(struct call *c)
{
    struct fields f;
    struct finish_job_input *in = begin_finish(c, &f);
    if (in == NULL)
        return c->op.problem.err;
    in->failed = true;
    const json_t *error;
    fields_object(&f, "error", &error);
    fields_require(&f, "error");
    enum err e = fields_end(&f);
    if (e != ERR_OK)
        return e;
    struct str code = STR_NONE;
    struct str message = STR_NONE;
    bool retryable = true;
    const json_t *details;
    fields_begin(&f, error, &c->op.problem);
    fields_text(&f, "code", NAME_MAX_LEN, &code);
    fields_text(&f, "message", JOB_OUTPUT_MAX, &message);
    fields_bool(&f, "retryable", &retryable);
    fields_any(&f, "details", &details);
    fields_require(&f, "code");
    e = fields_end(&f);
    if (e == ERR_OK)
        e = call_uuid(c, ERR_JOB_NOT_FOUND, &in->job_id);
    return e == ERR_OK ? call_json_text(c, error, &in->error) : e;
}

enum err prepare_get_job(struct call *c)
{
    struct get_job_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    return call_uuid(c, ERR_JOB_NOT_FOUND, &in->job_id);
}
