/* Where runs and the attempts of their jobs are in a trace. */
#include "core/run/run_trace.h"

#include "base/limits.h"
#include "core/txn/job_row.h"

struct trace_span run_span(const struct run *run)
{
    return trace_span_below(run->traceparent, run->id, trace_span_id(run->id, 0));
}

/* A released attempt is not counted, but its worker has seen the span: the lease's number tells
 * them apart. */
struct trace_span attempt_span(const struct run *run, const struct job *job)
{
    struct trace_span parent = run_span(run);
    return trace_span_child(&parent, trace_span_id(job->id, job->lease_epoch));
}

/* --- exporting --- */

/* The beginning of a member of an error; ptr NULL: it has none. */
static struct str error_member(struct tx *tx, const struct json *error, const char *name)
{
    const struct json *value = json_member(error, str_of(name));
    if (!json_is(value, JSON_KIND_TEXT))
        return STR_NONE;
    struct str text = json_text_of(value);
    text.len = MIN(text.len, (size_t)SPAN_TEXT_MAX);
    char *copy = arena_alloc(&tx->arena, text.len + 1);
    if (copy == NULL)
        return STR_NONE;
    memcpy(copy, text.ptr, text.len);
    str_repair_utf8(copy, text.len);
    return (struct str){copy, text.len};
}

/* `error` is JSON: {code, message, …}; ptr NULL: not known. */
static void set_failed(struct span *span, struct tx *tx, struct str error)
{
    struct json *json = NULL;
    span->failed = true;
    if (error.ptr == NULL || json_read_kept(error, &json) != ERR_OK)
        return;
    span->message = error_member(tx, json, "message");
    span_add_text(span, "error.type", error_member(tx, json, "code"));
    json_free(json);
}

static bool is_exported(const struct run_txn *m, const struct trace_span *place)
{
    return m->tx->exports_spans && (place->flags & TRACE_SAMPLED) != 0;
}

enum err run_trace_ended(struct run_txn *m)
{
    const struct run *run = &m->run;
    struct span span = {.kind = SPAN_INTERNAL, .place = run_span(run)};
    if (!is_exported(m, &span.place))
        return ERR_OK;
    span.name = run->workflow_id;
    span.tracestate = run->tracestate;
    span_set_times(&span, run->created_at, run->finished_at);
    span_add_text(&span, "pawl.tenant", m->tenant->id);
    span_add_text(&span, "pawl.run.id", tx_id_text(m->tx, run->id));
    span_add_text(&span, "pawl.run.status", str_of(run_status_name(run->status)));
    span_add_text(&span, "pawl.workflow.id", run->workflow_id);
    span_add_number(&span, "pawl.workflow.version", run->workflow_version);
    if (run->status != RUN_SUCCEEDED && run->status != RUN_CANCELLED)
        set_failed(&span, m->tx, run->error);
    return tx_export_span(m->tx, &span);
}

/* Has the job left a state in which something was done or waited for? A job in its queue, or kept
 * back until its next attempt, only waits for its turn. */
static bool has_ended_span(enum job_state from, const struct job *job)
{
    switch (from) {
    case JOB_RUNNING:
    case JOB_DISPATCHED:
        return true;
    case JOB_APPROVAL:
    case JOB_STATE_COUNT:
        return job_has_ended(job->state);
    case JOB_SCHEDULED:
        return job_has_ended(job->state) && job->lease_epoch == 0 && job->started_at >= 0;
    default:
        return false;
    }
}

static bool has_failed(enum job_event on, const struct job *job)
{
    return on == JOB_ON_EXPIRE || on == JOB_ON_RETRY || job->state == JOB_FAILED ||
           job->state == JOB_TIMED_OUT || job->state == JOB_DENIED;
}

static struct str outcome_of(enum job_event on, const struct job *job)
{
    if (job_has_ended(job->state))
        return str_of(job_state_name(job->state));
    if (on == JOB_ON_RELEASE)
        return STR("released");
    if (on == JOB_ON_SUSPEND)
        return STR("suspended");
    return on == JOB_ON_EXPIRE ? STR("lease_expired") : STR("failed");
}

enum err run_trace_job_changed(struct run_txn *m, enum job_state from, enum job_event on,
                               const struct job *job)
{
    if (!m->tx->exports_spans || !has_ended_span(from, job))
        return ERR_OK;
    const struct step_def *step = job_step(m->def, job);
    struct span span = {.kind = SPAN_INTERNAL, .place = attempt_span(&m->run, job)};
    if (!is_exported(m, &span.place))
        return ERR_OK;
    span.name = step->name;
    span.tracestate = m->run.tracestate;
    span_set_times(&span, job->started_at >= 0 ? job->started_at : job->created_at, m->tx->now_ms);
    span_add_text(&span, "pawl.run.id", tx_id_text(m->tx, m->run.id));
    span_add_text(&span, "pawl.job.id", tx_id_text(m->tx, job->id));
    span_add_text(&span, "pawl.job.outcome", outcome_of(on, job));
    span_add_text(&span, "pawl.step.type", str_of(step_type_name(step->type)));
    /* An attempt that is released is not counted any more. */
    span_add_number(&span, "pawl.job.attempt", job->attempt + (on == JOB_ON_RELEASE));
    span_add_text(&span, "pawl.worker.id", job->worker);
    if (has_failed(on, job))
        set_failed(&span, m->tx, job->error);
    return tx_export_span(m->tx, &span);
}
