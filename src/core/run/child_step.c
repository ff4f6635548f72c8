/* Steps of type workflow: a child run does the work. */
#include "core/run/step_ops.h"

#include "base/limits.h"
#include "core/run/job_txn.h"
#include "core/run/run_new.h"
#include "core/run/run_trace.h"
#include "core/run/run_values.h"

/* --- beginning --- */

/* One that begins itself, however many levels down, would have no end, and with a map or two steps
 * as many runs as the disk can hold. */
static enum err check_ancestors(struct step_item *i)
{
    struct run_txn *m = i->m;
    struct run run = m->run;
    for (;;) {
        if (str_eq(run.workflow_id, i->def->workflow_id))
            return problem_set(&i->p, ERR_EXPRESSION, "Workflow \"%.*s\" would run inside itself",
                               STR_ARG(i->def->workflow_id));
        bool found = false;
        if (run.parent_run < 0)
            return ERR_OK;
        enum err e = runs_find_num(m->tx->db, run.parent_run, &m->tx->arena, &found, &run);
        if (e != ERR_OK || !found)
            return e != ERR_OK ? e : ERR_INTERNAL;
    }
}

/* The child is a span below the attempt that it is a part of. */
static enum err child_trace(const struct step_item *i, struct str *ret)
{
    char traceparent[TRACEPARENT_LEN + 1];
    struct trace_span span = attempt_span(&i->m->run, i->job);
    trace_write(&span, traceparent);
    *ret = arena_str(&i->m->tx->arena, str_of(traceparent));
    return ret->ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
}

/* The child begins in a turn of its own, and its end wakes the job. */
enum err step_workflow_begin(struct step_item *i)
{
    struct run_txn *m = i->m;
    i->code = "CHILD_REFUSED";
    struct run_txn child = {
        .read_tx = m->read_tx, .tx = m->tx, .tenant = m->tenant, .run = run_blank()};
    struct workflow_newest newest = {0};
    enum err e = read_tx_newest(m->read_tx, m->run.tenant, i->def->workflow_id, &newest);
    if (e != ERR_OK)
        return e;
    if (!newest.found || (newest.archived && i->def->version < 0))
        return problem_set(&i->p, ERR_EXPRESSION, "Workflow \"%.*s\" does not exist",
                           STR_ARG(i->def->workflow_id));
    if (m->run.depth + 1 > CHILD_DEPTH_MAX)
        return problem_set(&i->p, ERR_EXPRESSION, "Runs are nested more than %d levels deep",
                           CHILD_DEPTH_MAX);
    e = check_ancestors(i);
    if (e != ERR_OK)
        return e;
    child.run.workflow_id = i->def->workflow_id;
    child.run.workflow_version = i->def->version > 0 ? i->def->version : newest.version;
    e = read_tx_definition(m->read_tx, m->run.tenant, child.run.workflow_id,
                           child.run.workflow_version, &i->p, &child.def);
    if (e == ERR_WORKFLOW_NOT_FOUND)
        return problem_set(&i->p, ERR_EXPRESSION, "Workflow \"%.*s\" has no version %lld",
                           STR_ARG(i->def->workflow_id), (long long)i->def->version);
    if (e == ERR_OK && child.def->unsupported.len > 0)
        return problem_set(&i->p, ERR_EXPRESSION, "%.*s", STR_ARG(child.def->unsupported));
    i->code = EXPRESSION_FAILED;
    if (e == ERR_OK)
        e = step_task_begin(i); /* the same rules for its input */
    if (e != ERR_OK)
        return e;
    child.run.input = i->job->input.ptr != NULL ? i->job->input : STR("null");
    if (i->job->input.ptr == NULL && i->def->input != NULL)
        e = values_text(m->tx, i->def->input, &child.run.input);
    child.run.priority = m->run.priority;
    child.run.labels = m->run.labels;
    child.run.tracestate = m->run.tracestate;
    if (e == ERR_OK)
        e = child_trace(i, &child.run.traceparent);
    child.run.created_by = m->run.created_by;
    child.run.created_at = m->tx->now_ms;
    child.run.parent_run = m->run.num;
    child.run.parent_ordinal = i->job->ordinal;
    child.run.depth = m->run.depth + 1;
    if (e == ERR_OK)
        e = run_txn_create_child(&child, &i->p);
    if (e != ERR_OK)
        return e;
    i->job->state = JOB_DISPATCHED;
    if (i->def->timeout_ms >= 0)
        i->job->due_at = m->tx->now_ms + i->def->timeout_ms;
    i->job->child = child.run.id;
    return ERR_OK;
}

/* --- its end --- */

static enum err give_up_child(struct run_txn *m, struct job *job)
{
    struct attempt_loss late = {
        .error = error_json(m->tx, "TIMED_OUT", STR("The child run took longer than timeout_ms")),
        .code = STR("TIMED_OUT"),
        .timed_out = true,
    };
    enum err e = late.error.ptr != NULL ? job_attempt_lost(m, job, &late) : ERR_NO_MEMORY;
    return e == ERR_OK ? run_txn_cancel_child_later(m->tx, job->child) : e;
}

/* `child` is NULL when the child run is not there any more. */
static enum err child_failed(struct run_txn *m, struct job *job, const struct run *child)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_text(&o, "code", STR("CHILD_FAILED"));
    json_add_text(&o, "status",
                  child != NULL ? str_of(run_status_name(child->status)) : STR("removed"));
    json_add_uuid(&o, "run_id", job->child);
    json_add_raw(&o, "cause", child != NULL ? child->error : STR_NONE);
    json_close(&o, '}');
    struct str error = arena_take(&m->tx->arena, &text);
    return error.ptr != NULL ? job_attempt_failed(m, job, error, STR("CHILD_FAILED"), false)
                             : ERR_NO_MEMORY;
}

/* A child run is over: its result is the job's. */
static enum err child_due(struct run_txn *m, struct job *job, struct problem *p)
{
    struct run_txn child;
    bool found = false;
    enum err e = run_txn_load_if(&child, m->tx, uuid_time(job->child), p, &found);
    if (e != ERR_OK)
        return e;
    if (!found)
        return child_failed(m, job, NULL);
    if (!run_has_ended(child.run.status)) {
        bool late = job->due_at >= 0 && job->due_at <= m->tx->now_ms;
        return late ? give_up_child(m, job) : ERR_OK;
    }
    bool has_output = child.run.error.ptr == NULL;
    if (child.run.status != RUN_SUCCEEDED || !has_output)
        return child_failed(m, job, &child.run);
    job->output = child.run.output.ptr != NULL ? child.run.output : STR("null");
    e = job_change(m, job, JOB_ON_COMPLETE);
    return e == ERR_OK ? job_ended(m, job) : e;
}

static enum err cancel_child(struct run_txn *m, const struct job *job)
{
    return uuid_is_nil(job->child) ? ERR_OK : run_txn_cancel_child_later(m->tx, job->child);
}

static enum err why_child(struct read_tx *tx, const struct step_def *def, const struct job *job,
                          struct json_out *o, struct buf *sentence)
{
    (void)tx, (void)job, (void)o;
    buf_printf(sentence, "Step %.*s is waiting for its child run.", STR_ARG(def->name));
    return ERR_OK;
}

const struct step_waits step_waits_child = {
    .kind = "child_run",
    .due = child_due,
    .cancelled = cancel_child,
    .why = why_child,
};
