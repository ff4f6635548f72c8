/* Routes of approvals: what waits for people, and what they say. */
#include "api/call.h"

enum err prepare_list_approvals(struct call *c)
{
    static const char *const KNOWN[] = {"status", "limit", "cursor", NULL};
    struct list_approvals_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->status = APPROVAL_STATUS_COUNT;
    struct str status = STR_NONE;
    enum err e = http_query_only(c->req, KNOWN, &c->op.problem);
    if (e == ERR_OK)
        e = http_query(c->req, "status", &c->op.problem, &status);
    if (e == ERR_OK && status.ptr != NULL)
        in->status = approval_status_of(status);
    if (e == ERR_OK && status.ptr != NULL && in->status == APPROVAL_STATUS_COUNT)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "status must be one of pending, approved, rejected, expired, void");
    return e == ERR_OK ? call_page(c, &in->limit, &in->cursor) : e;
}

enum err prepare_get_approval(struct call *c)
{
    struct get_job_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    return call_uuid(c, ERR_APPROVAL_NOT_FOUND, &in->job_id);
}

/* `null` for edited says no more than leaving it out. */
static enum err read_edited(struct call *c, const json_t *edited, struct decide_input *in)
{
    if (edited == NULL || json_is_null(edited))
        return ERR_OK;
    in->edited = edited;
    enum err e = call_json_text(c, edited, &in->edited_text);
    if (e == ERR_OK && in->edited_text.len > JOB_OUTPUT_MAX)
        return problem_set(&c->op.problem, ERR_BODY_TOO_LARGE, "edited may have at most %d bytes",
                           JOB_OUTPUT_MAX);
    return e;
}

enum err prepare_decide(struct call *c)
{
    struct decide_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    const json_t *edited;
    struct fields f;
    call_fields(c, &f, c->body);
    fields_text(&f, "reason", TEXT_MAX, &in->reason);
    fields_text(&f, "expected_hash", NAME_MAX_LEN, &in->expected_hash);
    fields_any(&f, "edited", &edited);
    enum err e = fields_end(&f);
    if (e == ERR_OK)
        e = call_uuid(c, ERR_APPROVAL_NOT_FOUND, &in->job_id);
    return e == ERR_OK ? read_edited(c, edited, in) : e;
}

enum err prepare_approval_stats(struct call *c)
{
    static const char *const KNOWN[] = {"days", "workflow_id", NULL};
    struct approval_stats_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->days = APPROVAL_STATS_DAYS_DEFAULT;
    enum err e = http_query_only(c->req, KNOWN, &c->op.problem);
    if (e == ERR_OK)
        e = call_query_int(c, "days", 1, APPROVAL_STATS_DAYS_MAX, &in->days);
    return e == ERR_OK ? http_query(c->req, "workflow_id", &c->op.problem, &in->workflow_id) : e;
}
