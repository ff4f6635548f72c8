/* Jobs of runs: handing them out, taking their results, and their time. */
#include "core/usecase/run_jobs.h"

#include "base/limits.h"
#include "core/run/approval_txn.h"
#include "core/run/job_txn.h"
#include "core/run/run_advance.h"
#include "core/run/run_trace.h"
#include "core/run/stale_result.h"
#include "core/run/step_ops.h"
#include "core/run/suspension.h"
#include "core/txn/lease.h"
#include "core/usecase/control.h"
#include "core/usecase/run_durable.h"

/* --- claim --- */

static enum err show_claimed(struct op *op, struct json_out *o, const struct run_txn *m,
                             const struct job *job)
{
    const struct step_def *step = job_step(m->def, job);
    char token[LEASE_TOKEN_MAX];
    char traceparent[TRACEPARENT_LEN + 1];
    struct trace_span span = attempt_span(&m->run, job);
    trace_write(&span, traceparent);
    lease_token(m->tx, job, token);
    lease_note_handed(op, job->id, token);
    json_open(o, NULL, '{');
    json_add_uuid(o, "job_id", job->id);
    json_add_text(o, "kind", STR("step"));
    json_add_uuid(o, "run_id", m->run.id);
    json_add_text(o, "workflow_id", m->run.workflow_id);
    json_add_text(o, "step", step->name);
    json_add_text(o, "handler", job->undo ? step->undo_handler : step->handler);
    json_add_int(o, "attempt", job->attempt);
    json_add_text(o, "tenant", m->tenant->id);
    if (job->input.ptr == NULL && step->input != NULL) {
        json_add_name(o, "input");
        json_write_plain(o->buf, step->input);
    } else {
        json_add_raw(o, "input", job->input.ptr != NULL ? job->input : m->run.input);
    }
    if (step->for_each != NULL && !job->undo)
        json_add_int(o, "item", job->item);
    if (job->undo)
        json_add_bool(o, "compensates", true);
    json_add_text(o, "lease_token", str_of(token));
    json_add_time(o, "lease_expires_at", job->due_at);
    json_add_text(o, "traceparent", str_of(traceparent));
    json_add_text_or_null(o, "tracestate", m->run.tracestate);
    enum err e = job->lease_epoch > 1 ? run_durable_show(m->read_tx, job, o) : ERR_OK;
    json_close(o, '}');
    return e;
}

/* The end of a lease, or of the attempt's own time if that comes first. */
static int64_t lease_end(const struct run_txn *m, const struct job *job, int64_t begun_at)
{
    int64_t end = m->tx->now_ms + job->lease_ms;
    int64_t timeout_ms = job_step(m->def, job)->timeout_ms;
    return timeout_ms >= 0 ? MIN(end, begun_at + timeout_ms) : end;
}

static enum err claim(struct op *op, struct tx *tx, const struct claim_input *in,
                      const struct job *job, struct json_out *o)
{
    struct run_txn m;
    enum err e = run_txn_load_other(&m, tx, job->owner, &op->problem);
    if (e != ERR_OK)
        return e;
    struct job taken = *job;
    taken.worker = in->worker_id;
    taken.lease_ms = in->lease_ms;
    taken.due_at = lease_end(&m, &taken, tx->now_ms);
    e = job_change(&m, &taken, JOB_ON_CLAIM);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot assign the job");
    e = show_claimed(op, o, &m, &taken);
    if (e != ERR_OK)
        return problem_set(&op->problem, err_after_change(e), "Cannot read the checkpoints");
    return buf_ok(&op->answer.handed)
               ? ERR_OK
               : problem_set(&op->problem, ERR_NO_MEMORY, "No memory for the job");
}

/* --- results --- */

static void answer_finished(struct json_out *o, const struct job *job, const char *status,
                            const struct run_txn *m)
{
    json_open(o, NULL, '{');
    json_add_uuid(o, "job_id", job->id);
    json_add_text(o, "status", str_of(status));
    json_add_uuid(o, "run_id", m->run.id);
    json_add_text(o, "run_status", str_of(run_status_name(m->run.status)));
    if (job->state == JOB_SCHEDULED)
        json_add_time(o, "retry_at", job->due_at);
    json_close(o, '}');
}

/* The job is over: the same result again is answered, anything else comes too late. */
static enum err answer_again(struct op *op, const struct finish_job_input *in, struct json_out *o,
                             const struct job *job, const struct run_txn *m, bool *ret_changed)
{
    bool again = false;
    enum err e = ERR_OK;
    if (job->state == (in->failed ? JOB_FAILED : JOB_SUCCEEDED))
        e = in->failed ? json_same_text(job->error, in->error, &again)
                       : json_same_text(job->output, in->output, &again);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot compare the results");
    if (!again)
        return problem_set(&op->problem, ERR_LEASE_LOST, "The job has already ended (status: %s)",
                           job_state_name(job->state));
    *ret_changed = false;
    answer_finished(o, job, in->failed ? "already_failed" : "already_completed", m);
    return ERR_OK;
}

/* A failure that was reported before, and waits for its next attempt or already for a worker. */
static enum err is_reported(const struct finish_job_input *in, const struct job *job, bool *ret)
{
    *ret = in->failed && (job->state == JOB_SCHEDULED || job->state == JOB_PENDING);
    return *ret ? json_same_text(job->error, in->error, ret) : ERR_OK;
}

static enum err finish(struct op *op, struct tx *tx, const struct finish_job_input *in,
                       struct job *job, struct json_out *o, bool *ret_changed)
{
    struct run_txn m;
    enum err e = run_txn_load_other(&m, tx, job->owner, &op->problem);
    if (e != ERR_OK)
        return e;
    *ret_changed = true;
    if (!lease_is_current(tx, job, in->lease_token))
        return job_refuse_stale(op, &m, job, in->lease_token,
                                "This is not the job's current lease, so the result was ignored");
    if (job_has_ended(job->state))
        return answer_again(op, in, o, job, &m, ret_changed);
    bool reported;
    e = is_reported(in, job, &reported);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot compare the results");
    if (reported) {
        *ret_changed = false;
        answer_finished(o, job, "already_failed", &m);
        return ERR_OK;
    }
    if (job->state != JOB_RUNNING)
        return job_refuse_stale(op, &m, job, in->lease_token, "The lease has ended");
    if (in->state.ptr != NULL)
        m.run.state = in->state;
    if (in->failed) {
        e = job_attempt_failed(&m, job, in->error, in->code, in->retryable);
    } else {
        job->output = in->output;
        job->error = STR_NONE;
        e = job_change(&m, job, JOB_ON_COMPLETE);
        if (e == ERR_OK)
            e = job_ended(&m, job);
    }
    if (e == ERR_OK && (job_has_ended(job->state) || in->state.ptr != NULL))
        e = run_txn_advance(&m);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot store the result");
    answer_finished(o, job,
                    !in->failed                   ? "completed"
                    : job->state == JOB_SCHEDULED ? "retrying"
                                                  : "failed",
                    &m);
    return ERR_OK;
}

/* --- heartbeat and release --- */

static enum err heartbeat(struct op *op, struct tx *tx, const struct heartbeat_input *in,
                          struct job *job)
{
    struct run_txn m;
    enum err e = run_txn_load_other(&m, tx, job->owner, &op->problem);
    if (e != ERR_OK)
        return e;
    bool current = lease_is_current(tx, job, in->lease_token);
    bool cancelled = current && job->state == JOB_CANCELLED;
    if (!current || (job->state != JOB_RUNNING && !cancelled))
        return job_refuse_stale(op, &m, job, in->lease_token, "The lease has ended");
    struct job renewed = *job;
    if (!cancelled) {
        renewed.due_at = lease_end(&m, job, job->started_at);
        if (in->note.ptr != NULL)
            renewed.note = in->note;
        e = job_row_touch(tx, job, &renewed);
        if (e != ERR_OK)
            return problem_set(&op->problem, e, "Cannot renew the lease");
    }
    op->answer.changed_nothing = cancelled;
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "job_id", job->id);
    json_add_time(&o, "lease_expires_at", cancelled ? -1 : renewed.due_at);
    json_add_bool(&o, "cancel_requested", cancelled);
    json_close(&o, '}');
    return ERR_OK;
}

static enum err release(struct op *op, struct tx *tx, const struct heartbeat_input *in,
                        struct job *job)
{
    struct run_txn m;
    enum err e = run_txn_load_other(&m, tx, job->owner, &op->problem);
    if (e != ERR_OK)
        return e;
    if (!lease_is_current(tx, job, in->lease_token))
        return job_refuse_stale(op, &m, job, in->lease_token, "The lease has ended");
    struct json_out o = json_out_to(&op->answer.body);
    if (job->state == JOB_PENDING) { /* again */
        op->answer.changed_nothing = true;
        answer_finished(&o, job, "released", &m);
        return ERR_OK;
    }
    if (job->state != JOB_RUNNING)
        return job_refuse_stale(op, &m, job, in->lease_token, "The lease has ended");
    e = job_change(&m, job, JOB_ON_RELEASE);
    if (e == ERR_OK && m.run.status == RUN_PAUSED)
        e = job_change(&m, job, JOB_ON_HOLD);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot release the job");
    answer_finished(&o, job, "released", &m);
    return ERR_OK;
}

/* --- time --- */

static enum err due(struct tx *tx, struct job *job, struct problem *p)
{
    struct run_txn m;
    bool over = job->state == JOB_SUSPENDED; /* its run may have waited with it */
    enum err e = run_txn_load_other(&m, tx, job->owner, p);
    if (e != ERR_OK)
        return e;
    if (job->state == JOB_APPROVAL)
        e = approval_due(&m, job, &over);
    else if (job->state == JOB_SUSPENDED)
        e = suspension_due(&m, job);
    else if (job->state == JOB_SCHEDULED || !uuid_is_nil(job->child))
        e = step_waits_of(m.def, job)->due(&m, job, p);
    else
        e = job_attempt_expired(&m, job);
    over |= job_has_ended(job->state);
    return e == ERR_OK && over ? run_txn_advance(&m) : e;
}

/* --- readers and dead letters --- */

static enum err show(struct read_tx *tx, const struct job *job, struct problem *p,
                     struct json_out *o)
{
    struct run_txn m;
    bool approved = false;
    enum err e = run_txn_read(&m, tx, job->owner, p);
    if (e != ERR_OK)
        return e;
    e = approval_of_job(&m, job, &approved);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot read the job's approval");
    render_job(o, job, &m.run, m.def, approved);
    e = run_durable_show(tx, job, o);
    return e == ERR_OK ? ERR_OK : problem_set(p, e, "Cannot read the job's checkpoints");
}

/* The run retries all that failed. */
static enum err retry(struct op *op, struct tx *tx, struct job *job)
{
    struct run_txn m;
    bool found = false;
    enum err e = run_txn_load_other(&m, tx, job->owner, &op->problem);
    if (e == ERR_OK)
        e = run_retry_failed(op, &m);
    return e == ERR_OK ? jobs_find_at(tx->db, job->owner, job->ordinal, &tx->arena, &found, job)
                       : e;
}

const struct job_owner_ops RUN_JOBS = {
    .claim = claim,
    .finish = finish,
    .heartbeat = heartbeat,
    .release = release,
    .checkpoint = run_checkpoint,
    .suspend = run_suspend,
    .due = due,
    .show = show,
    .retry = retry,
    .asks = true,
};
