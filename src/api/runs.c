/* Routes of runs: start, show, list, cancel. */
#include "api/call.h"

#include "domain/labels.h"

/* --- start --- */

/* What both routes share; the workflow is named by the path or by the body. */
static enum err read_start(struct call *c, struct fields *f, struct start_run_input *in)
{
    const json_t *labels;
    struct str at_limit = STR_NONE;
    struct str start_at = STR_NONE;
    fields_any(f, "input", &in->input);
    if (json_is_null(in->input))
        fields_default(f, "input");
    fields_object(f, "labels", &labels);
    if (labels != NULL && json_object_size(labels) == 0)
        fields_default(f, "labels");
    labels_check(f, labels);
    fields_int(f, "priority", PRIORITY_MIN, PRIORITY_MAX, &in->priority);
    fields_text(f, "at_limit", NAME_MAX_LEN, &at_limit);
    in->at_limit = at_limit_of(at_limit);
    if (at_limit.ptr != NULL && in->at_limit == AT_LIMIT_COUNT)
        fields_fault(f, "at_limit", "must be one of reject, queue, cancel_oldest, coalesce");
    fields_text(f, "start_at", NAME_MAX_LEN, &start_at);
    in->start_at = -1;
    if (start_at.ptr != NULL && (!time_parse(start_at, &in->start_at) || in->start_at < 0))
        fields_fault(f, "start_at", "must be a time as 2026-01-31T12:00:00Z");
    struct str key = STR_NONE;
    fields_text(f, c->route->body_key, IDEM_KEY_BYTES_MAX, &key);
    enum err e = fields_end(f);
    in->input_text = STR("null");
    in->labels = STR("{}");
    in->traceparent = c->req->traceparent;
    if (e == ERR_OK && in->input != NULL)
        e = call_json_text(c, in->input, &in->input_text);
    if (e == ERR_OK && labels != NULL)
        e = call_json_text(c, labels, &in->labels);
    c->op.input = in;
    return e;
}

enum err prepare_start_run(struct call *c)
{
    struct start_run_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    enum err e = call_name(c, NAME_MAX_LEN, &in->workflow_id);
    if (e != ERR_OK)
        return e;
    struct fields f;
    call_fields(c, &f, c->body);
    return read_start(c, &f, in);
}

enum err prepare_start_run_flat(struct call *c)
{
    struct start_run_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    struct fields f;
    call_fields(c, &f, c->body);
    fields_name(&f, "definitionId", NAME_MAX_LEN, &in->workflow_id);
    fields_require(&f, "definitionId");
    return read_start(c, &f, in);
}

/* --- one run --- */

enum err prepare_get_run(struct call *c)
{
    struct run_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    return call_uuid(c, ERR_RUN_NOT_FOUND, &in->run_id);
}

static enum err prepare_control(struct call *c, enum control_action action)
{
    struct control_run_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->action = action;
    enum err e = call_uuid(c, ERR_RUN_NOT_FOUND, &in->run_id);
    if (e == ERR_OK)
        e = call_if_match(c, &in->if_match);
    struct fields f;
    call_fields(c, &f, c->body);
    if (action == CONTROL_CANCEL)
        fields_text(&f, "reason", TEXT_MAX, &in->reason);
    return e == ERR_OK ? fields_end(&f) : e;
}

enum err prepare_cancel_run(struct call *c)
{
    return prepare_control(c, CONTROL_CANCEL);
}

enum err prepare_pause_run(struct call *c)
{
    return prepare_control(c, CONTROL_PAUSE);
}

enum err prepare_resume_run(struct call *c)
{
    return prepare_control(c, CONTROL_RESUME);
}

enum err prepare_retry_run(struct call *c)
{
    return prepare_control(c, CONTROL_RETRY);
}

enum err prepare_rerun_run(struct call *c)
{
    struct rerun_run_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    enum err e = call_uuid(c, ERR_RUN_NOT_FOUND, &in->run_id);
    if (e == ERR_OK)
        e = call_if_match(c, &in->if_match);
    struct fields f;
    call_fields(c, &f, c->body);
    fields_text(&f, "from_step", NAME_MAX_LEN, &in->from_step);
    return e == ERR_OK ? fields_end(&f) : e;
}

enum err prepare_signal_run(struct call *c)
{
    struct signal_run_input *in = call_alloc(c, sizeof(*in));
    struct signal_fields said;
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    enum err e = call_uuid(c, ERR_RUN_NOT_FOUND, &in->run_id);
    if (e == ERR_OK)
        e = call_if_match(c, &in->if_match);
    if (e == ERR_OK)
        e = call_signal(c, false, &said);
    if (e != ERR_OK)
        return e;
    in->name = said.name;
    in->payload = said.payload;
    in->dedup_key = said.dedup_key;
    in->request = said.request;
    return ERR_OK;
}

static void read_filter(struct fields *f, const json_t *filter, struct run_filter *ret)
{
    struct str status = STR_NONE;
    struct str label = STR_NONE;
    struct str times[2] = {STR_NONE, STR_NONE};
    *ret =
        (struct run_filter){.status = RUN_STATUS_COUNT, .created_after = -1, .created_before = -1};
    struct fields g;
    fields_begin(&g, filter, f->problem);
    g.defaults = f->defaults;
    fields_text(&g, "status", NAME_MAX_LEN, &status);
    fields_text(&g, "workflow_id", NAME_MAX_LEN, &ret->workflow_id);
    fields_text(&g, "label", TEXT_MAX, &label);
    fields_text(&g, "created_after", NAME_MAX_LEN, &times[0]);
    fields_text(&g, "created_before", NAME_MAX_LEN, &times[1]);
    if (status.ptr != NULL && (ret->status = run_status_of(status)) == RUN_STATUS_COUNT)
        fields_fault(&g, "status", "is no status of a run");
    if (label.ptr != NULL && !str_cut(label, ':', &ret->label_name, &ret->label_value))
        fields_fault(&g, "label", "must be NAME:VALUE");
    if (times[0].ptr != NULL && !time_parse(times[0], &ret->created_after))
        fields_fault(&g, "created_after", "must be a time as 2026-01-31T12:00:00Z");
    if (times[1].ptr != NULL && !time_parse(times[1], &ret->created_before))
        fields_fault(&g, "created_before", "must be a time as 2026-01-31T12:00:00Z");
    f->err = fields_end(&g);
}

enum err prepare_bulk_runs(struct call *c)
{
    static const char *const ACTIONS[] = {"cancel", "pause", "resume", "retry"};
    static_assert(ARRAY_LEN(ACTIONS) == CONTROL_COUNT, "one word per action");
    struct bulk_runs_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    struct str action = STR_NONE;
    struct str cursor = STR_NONE;
    const json_t *filter;
    struct fields f;
    call_fields(c, &f, c->body);
    fields_text(&f, "action", NAME_MAX_LEN, &action);
    fields_require(&f, "action");
    fields_object(&f, "filter", &filter);
    fields_require(&f, "filter");
    fields_bool(&f, "dry_run", &in->dry_run);
    fields_text(&f, "cursor", NAME_MAX_LEN, &cursor);
    fields_text(&f, "reason", TEXT_MAX, &in->control.reason);
    in->control.if_match = -1;
    in->control.action = 0;
    while (in->control.action < CONTROL_COUNT && !str_is(action, ACTIONS[in->control.action]))
        in->control.action++;
    if (action.ptr != NULL && in->control.action == CONTROL_COUNT)
        fields_fault(&f, "action", "must be one of cancel, pause, resume, retry");
    in->before = INT64_MAX;
    if (cursor.ptr != NULL && (!str_to_i64(cursor, &in->before) || in->before < 0))
        fields_fault(&f, "cursor", "is not from this list");
    if (f.err == ERR_OK && filter != NULL)
        read_filter(&f, filter, &in->filter);
    return fields_end(&f);
}

/* --- lists --- */

static enum err query_time(struct call *c, const char *name, int64_t *ret)
{
    struct str text;
    enum err e = http_query(c->req, name, &c->op.problem, &text);
    if (e != ERR_OK || text.ptr == NULL)
        return e;
    if (!time_parse(text, ret) || *ret < 0)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "%s must be a time as 2026-01-31T12:00:00Z", name);
    return ERR_OK;
}

static enum err query_status(struct call *c, enum run_status *ret)
{
    struct str text;
    *ret = RUN_STATUS_COUNT;
    enum err e = http_query(c->req, "status", &c->op.problem, &text);
    if (e != ERR_OK || text.ptr == NULL)
        return e;
    *ret = run_status_of(text);
    if (*ret == RUN_STATUS_COUNT)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST, "there is no status \"%.*s\"",
                           (int)MIN(text.len, (size_t)64), text.ptr);
    return ERR_OK;
}

static enum err query_label(struct call *c, struct list_runs_input *in)
{
    struct str text;
    enum err e = http_query(c->req, "label", &c->op.problem, &text);
    if (e != ERR_OK || text.ptr == NULL)
        return e;
    if (!str_cut(text, ':', &in->label_name, &in->label_value) || in->label_name.len == 0)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST, "label must be NAME:VALUE");
    return ERR_OK;
}

enum err prepare_list_runs(struct call *c)
{
    static const char *const KNOWN[] = {"status",         "workflow_id", "label",  "created_after",
                                        "created_before", "limit",       "cursor", NULL};
    struct list_runs_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->created_after = in->created_before = -1;
    enum err e = http_query_only(c->req, KNOWN, &c->op.problem);
    if (e == ERR_OK)
        e = call_page(c, &in->limit, &in->cursor);
    if (e == ERR_OK)
        e = query_status(c, &in->status);
    if (e == ERR_OK)
        e = http_query(c->req, "workflow_id", &c->op.problem, &in->workflow_id);
    if (e == ERR_OK)
        e = query_label(c, in);
    if (e == ERR_OK)
        e = query_time(c, "created_after", &in->created_after);
    if (e == ERR_OK)
        e = query_time(c, "created_before", &in->created_before);
    return e;
}

enum err prepare_list_events(struct call *c)
{
    static const char *const KNOWN[] = {"limit", "cursor", NULL};
    struct list_events_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    struct str cursor = STR_NONE;
    enum err e = call_uuid(c, ERR_RUN_NOT_FOUND, &in->run_id);
    if (e == ERR_OK)
        e = http_query_only(c->req, KNOWN, &c->op.problem);
    if (e == ERR_OK)
        e = call_page(c, &in->limit, &cursor);
    if (e == ERR_OK && cursor.ptr != NULL && (!str_to_i64(cursor, &in->after) || in->after < 0))
        return problem_set(&c->op.problem, ERR_CURSOR_INVALID, "cursor is not from this list");
    return e;
}
