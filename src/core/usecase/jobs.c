/* Handing jobs to workers and taking their results. */
#include "core/entity/entity_call.h"
#include "core/run/follow_up.h"
#include "core/run/job_txn.h"
#include "core/run/run_advance.h"
#include "core/txn/lease.h"
#include "core/txn/worker_polls.h"
#include "core/usecase/execute.h"
#include "core/usecase/job_view.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"

/* --- claim --- */

static void show_claimed(struct op *op, struct json_out *o, const struct run_txn *m,
                         const struct job *job)
{
    const struct step_def *step = job_step(m->def, job);
    char token[LEASE_TOKEN_MAX];
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
        json_put_plain(o->buf, step->input);
    } else {
        json_add_raw(o, "input", job->input.ptr != NULL ? job->input : m->run.input);
    }
    if (step->for_each != NULL && !job->undo)
        json_add_int(o, "item", job->item);
    if (job->undo)
        json_add_bool(o, "compensates", true);
    json_add_text(o, "lease_token", str_of(token));
    json_add_time(o, "lease_expires_at", job->due_at);
    json_add_text_or_null(o, "traceparent", m->run.traceparent);
    json_close(o, '}');
}

/* The end of a lease, or of the attempt's own time if that comes first. */
static int64_t lease_end(const struct run_txn *m, const struct job *job, int64_t begun_at)
{
    int64_t end = m->tx->now_ms + job->lease_ms;
    int64_t timeout_ms = job_step(m->def, job)->timeout_ms;
    return timeout_ms >= 0 ? MIN(end, begun_at + timeout_ms) : end;
}

static enum err claim_one(struct op *op, const struct claim_input *in, struct tx *tx,
                          const struct job *job, struct json_out *o)
{
    struct run_txn m;
    if (job_is_of_entity(job))
        return entity_call_claim(op, tx, in, job, o);
    enum err e = run_txn_load(&m, tx, job->run, &op->problem);
    if (e != ERR_OK)
        return e;
    struct job taken = *job;
    taken.worker = in->worker_id;
    taken.lease_ms = in->lease_ms;
    taken.due_at = lease_end(&m, &taken, tx->now_ms);
    e = job_change(&m, &taken, JOB_ON_CLAIM);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot assign the job");
    show_claimed(op, o, &m, &taken);
    return buf_ok(&op->answer.handed)
               ? ERR_OK
               : problem_set(&op->problem, ERR_NO_MEMORY, "No memory for the job");
}

/* Large inputs end a claim early: what is left of the answer's room holds one more job of any size.
 */
static bool takes_more(const struct op *op, const struct claim_input *in, int64_t count)
{
    return count < in->max && op->answer.body.len <= PAGE_BYTES_MAX;
}

/* Up to in->max jobs of one tenant and queue. */
static enum err claim_from(struct op *op, const struct claim_input *in, struct tx *tx,
                           int64_t tenant, struct str queue, int64_t most, int64_t *count,
                           struct json_out *o)
{
    enum err e = ERR_OK;
    while (takes_more(op, in, *count) && most-- > 0) {
        struct job job;
        bool found = false;
        e = jobs_next(tx->db, tenant, queue, &tx->arena, &found, &job);
        if (e != ERR_OK)
            return problem_set(&op->problem, e, "Cannot search for jobs");
        if (!found)
            break;
        e = claim_one(op, in, tx, &job, o);
        if (e != ERR_OK)
            return e;
        ++*count;
    }
    return ERR_OK;
}

/* The turn goes to the next tenant with something to claim, for as many jobs as its weight. */
static enum err pass_turn(struct op *op, struct tx *tx, struct str queue, struct claim_turn *turn,
                          bool *ret_found)
{
    bool found = false;
    int64_t next = 0;
    struct tenant *tenant = NULL;
    enum err e = jobs_next_tenant(tx->db, queue, turn->tenant, &found, &next);
    if (e == ERR_OK && !found && turn->tenant > 0)
        e = jobs_next_tenant(tx->db, queue, 0, &found, &next);
    if (e == ERR_OK && found)
        e = read_tx_tenant_num(&tx->read, next, &tenant);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot search for jobs");
    if (found) {
        turn->tenant = next;
        turn->left = tenant->weight;
    }
    *ret_found = found;
    return ERR_OK;
}

/* The queue's own turn. One that takes over another's place goes on from the tenant there, so that
 * nobody is favoured by queues that crowd each other out. */
static struct claim_turn *turn_of(struct tx *tx, struct str queue)
{
    enum { PROBES = 8 };
    uint64_t hash = str_hash(queue) | 1; /* 0 is a free place */
    for (size_t i = 0; i < PROBES; i++) {
        struct claim_turn *turn = &tx->claim_turns[(hash + i) % CLAIM_TURNS];
        if (turn->queue == 0)
            turn->queue = hash;
        if (turn->queue == hash)
            return turn;
    }
    struct claim_turn *taken = &tx->claim_turns[hash % CLAIM_TURNS];
    taken->queue = hash;
    taken->left = 0;
    return taken;
}

/* Tenants take turns, each with as many jobs as its weight, so that nobody's backlog starves the
 * others. The turn goes on where the last claim stopped; losing it at a restart does no harm. */
static enum err claim_all_tenants(struct op *op, const struct claim_input *in, struct tx *tx,
                                  struct str queue, int64_t *count, struct json_out *o)
{
    struct claim_turn *turn = turn_of(tx, queue);
    bool more = true;
    while (more && takes_more(op, in, *count)) {
        enum err e = ERR_OK;
        int64_t before = *count;
        if (turn->left > 0)
            e = claim_from(op, in, tx, turn->tenant, queue, 1, count, o);
        turn->left--;
        if (e == ERR_OK && (*count == before || turn->left <= 0))
            e = pass_turn(op, tx, queue, turn, &more);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

/* The member `jobs`. */
static enum err claim(struct op *op, const struct claim_input *in, struct tx *tx,
                      struct json_out *o, int64_t *ret_count)
{
    bool all = str_is(op->caller.tenant, "*");
    struct tenant *tenant = NULL;
    enum err e = ERR_OK;
    *ret_count = 0;
    if (!all)
        e = read_tx_tenant(&tx->read, op, &tenant);
    if (e != ERR_OK)
        return e;
    json_open(o, "jobs", '[');
    for (size_t i = 0; i < in->queue_count && e == ERR_OK; i++) {
        worker_polls_note(tx->polls, op->caller.tenant, in->worker_id, in->queues[i], tx->now_ms);
        if (all)
            e = claim_all_tenants(op, in, tx, in->queues[i], ret_count, o);
        else
            e = claim_from(op, in, tx, tenant->num, in->queues[i], in->max, ret_count, o);
    }
    json_close(o, ']');
    return e;
}

static enum err claim_jobs(struct op *op, struct tx *tx)
{
    int64_t count = 0;
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    enum err e = claim(op, op->input, tx, &o, &count);
    json_close(&o, '}');
    op->answer.changed_nothing = count == 0;
    op->answer.keep_waiting = count == 0;
    return e;
}

const struct use_case UC_CLAIM_JOBS = {.name = "claim_jobs", .write = claim_jobs};

/* --- complete and fail --- */

static enum err find_job(struct op *op, struct read_tx *tx, struct uuid id, struct job *ret_job)
{
    struct tenant *tenant = NULL;
    enum err e = ERR_OK;
    if (!str_is(op->caller.tenant, "*"))
        e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    bool found = false;
    if (tenant == NULL || tenant->num != 0)
        e = jobs_find(tx->db, tenant != NULL ? tenant->num : 0, id, &tx->arena, &found, ret_job);
    if (e == ERR_OK && found)
        return ERR_OK;
    bool missing = e == ERR_OK;
    if (missing)
        e = ERR_JOB_NOT_FOUND;
    (void)problem_set(&op->problem, e, missing ? "This job does not exist" : "Cannot read the job");
    return e;
}

static enum err claim_job(struct op *op, struct tx *tx)
{
    const struct claim_job_input *in = op->input;
    struct job job;
    enum err e = find_job(op, &tx->read, in->job_id, &job);
    if (e != ERR_OK)
        return e;
    if (job.state != JOB_PENDING || str_starts_with(job.queue, STR(OWN_QUEUES)))
        return problem_set(&op->problem, ERR_JOB_NOT_CLAIMABLE, "The job is %s",
                           job_state_name(job.state));
    struct json_out o = json_out_to(&op->answer.body);
    worker_polls_note(tx->polls, op->caller.tenant, in->claim.worker_id, job.queue, tx->now_ms);
    return claim_one(op, &in->claim, tx, &job, &o);
}

const struct use_case UC_CLAIM_JOB = {.name = "claim_job", .write = claim_job};

/* --- leases --- */

/* A worker that comes too late is told so, and the timeline tells of it, once for each lease. */
static enum err refuse_stale(struct op *op, struct run_txn *m, struct job *job, struct str token,
                             const char *why)
{
    int64_t epoch = 0;
    if (lease_is_news(job, token, &epoch)) {
        struct job touched = *job;
        touched.stale_epoch = epoch;
        struct buf data;
        buf_init(&data, 4 * KIB);
        struct json_out o = json_out_to(&data);
        json_open(&o, NULL, '{');
        json_add_uuid(&o, "job_id", job->id);
        json_add_text(&o, "step", job_step(m->def, job)->name);
        json_add_int(&o, "lease", epoch);
        json_add_text(&o, "by", op->caller.actor);
        json_close(&o, '}');
        enum err e = buf_ok(&data) ? job_row_touch(m->tx, job, &touched) : ERR_NO_MEMORY;
        if (e == ERR_OK)
            e = run_txn_add_event(m, EVENT_JOB_STALE_RESULT, buf_str(&data));
        buf_release(&data);
        if (e != ERR_OK)
            return problem_set(&op->problem, e, "Cannot record the stale lease");
        op->answer.refusal_wrote = true;
    }
    return problem_set(&op->problem, ERR_LEASE_LOST, "%s", why);
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
    bool again = in->failed
                     ? job->state == JOB_FAILED && json_same_text(job->error, in->error)
                     : job->state == JOB_SUCCEEDED && json_same_text(job->output, in->output);
    if (!again)
        return problem_set(&op->problem, ERR_LEASE_LOST, "The job has already ended (status: %s)",
                           job_state_name(job->state));
    *ret_changed = false;
    answer_finished(o, job, in->failed ? "already_failed" : "already_completed", m);
    return ERR_OK;
}

/* A failure that was reported before, and waits for its next attempt or already for a worker. */
static bool is_reported(const struct finish_job_input *in, const struct job *job)
{
    return in->failed && (job->state == JOB_SCHEDULED || job->state == JOB_PENDING) &&
           json_same_text(job->error, in->error);
}

static enum err finish_one(struct op *op, struct tx *tx, const struct finish_job_input *in,
                           struct json_out *o, bool *ret_changed)
{
    struct job job = {0};
    struct run_txn m = {0};
    enum err e = find_job(op, &tx->read, in->job_id, &job);
    if (e == ERR_OK && job_is_of_entity(&job))
        return entity_call_finish(op, tx, in, &job, o, ret_changed);
    if (e == ERR_OK)
        e = run_txn_load(&m, tx, job.run, &op->problem);
    if (e != ERR_OK)
        return e;
    *ret_changed = true;
    if (!lease_is_current(tx, &job, in->lease_token))
        return refuse_stale(op, &m, &job, in->lease_token,
                            "This is not the job's current lease, so the result was ignored");
    if (job_has_ended(job.state))
        return answer_again(op, in, o, &job, &m, ret_changed);
    if (is_reported(in, &job)) {
        *ret_changed = false;
        answer_finished(o, &job, "already_failed", &m);
        return ERR_OK;
    }
    if (job.state != JOB_RUNNING)
        return refuse_stale(op, &m, &job, in->lease_token, "The lease has expired");
    if (in->state.ptr != NULL)
        m.run.state = in->state;
    if (in->failed) {
        e = job_attempt_failed(&m, &job, in->error, in->code, in->retryable);
    } else {
        job.output = in->output;
        job.error = STR_NONE;
        e = job_change(&m, &job, JOB_ON_COMPLETE);
        if (e == ERR_OK)
            e = job_ended(&m, &job);
    }
    if (e == ERR_OK && (job_has_ended(job.state) || in->state.ptr != NULL))
        e = run_txn_advance(&m);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot store the result");
    answer_finished(o, &job,
                    !in->failed                  ? "completed"
                    : job.state == JOB_SCHEDULED ? "retrying"
                                                 : "failed",
                    &m);
    return ERR_OK;
}

static enum err finish_job(struct op *op, struct tx *tx)
{
    struct json_out o = json_out_to(&op->answer.body);
    bool changed = true;
    enum err e = finish_one(op, tx, op->input, &o, &changed);
    op->answer.changed_nothing = !changed;
    return e;
}

const struct use_case UC_FINISH_JOB = {.name = "finish_job", .write = finish_job};

/* --- many results at once --- */

/* One that was refused is told so in its place, and the others count. */
static void answer_refused(struct json_out *o, const struct finish_job_input *in, enum err e,
                           const char *detail)
{
    json_open(o, NULL, '{');
    json_add_uuid(o, "job_id", in->job_id);
    json_add_text(o, "status", STR("refused"));
    json_add_text(o, "code", str_of(err_code(e)));
    json_add_text(o, "detail", str_of(detail));
    json_add_bool(o, "retryable", err_retryable(e));
    json_close(o, '}');
}

/* All of the item or nothing; *ret_changed says which. An error takes the transaction with it. */
static enum err finish_item(struct op *op, struct tx *tx, size_t index, struct json_out *o,
                            bool *ret_changed)
{
    const struct finish_jobs_input *in = op->input;
    const struct finish_job_input *item = &in->items[index];
    const struct failed_item *failed_items = op_failed_item(op, (int64_t)index);
    *ret_changed = failed_items == NULL;
    if (failed_items != NULL) {
        answer_refused(o, item, failed_items->err, failed_items->detail);
        return ERR_OK;
    }
    int64_t before = tx_changes(tx);
    enum err e = tx_own_error(tx, finish_one(op, tx, item, o, ret_changed));
    if (e == ERR_OK || is_outage(e))
        return e;
    bool half_done = tx_changes(tx) != before && !op->answer.refusal_wrote;
    if (half_done || is_store_failure(e))
        return op_fail_item(op, (int64_t)index, e, op->problem.detail) ? e : ERR_INTERNAL;
    answer_refused(o, item, e, op->problem.detail);
    *ret_changed = op->answer.refusal_wrote;
    op->answer.refusal_wrote = false;
    problem_clear(&op->problem);
    return ERR_OK;
}

static enum err finish_jobs(struct op *op, struct tx *tx)
{
    const struct finish_jobs_input *in = op->input;
    struct json_out o = json_out_to(&op->answer.body);
    bool any = false;
    enum err e = ERR_OK;
    json_open(&o, NULL, '{');
    json_open(&o, "results", '[');
    for (size_t i = 0; i < in->count && e == ERR_OK; i++) {
        struct arena_mark mark = arena_mark(&tx->arena);
        bool changed = true;
        e = finish_item(op, tx, i, &o, &changed);
        any |= changed;
        if (e == ERR_OK)
            e = follow_up(tx, &op->problem);
        if (e == ERR_OK) {
            read_tx_drop_json(&tx->read);
            arena_back_to(&tx->arena, mark);
        }
    }
    json_close(&o, ']');
    int64_t count = 0;
    if (e == ERR_OK && in->claim != NULL)
        e = claim(op, in->claim, tx, &o, &count);
    json_close(&o, '}');
    op->answer.changed_nothing = !any && count == 0;
    return e;
}

const struct use_case UC_FINISH_JOBS = {.name = "finish_jobs", .write = finish_jobs};

/* --- heartbeat and release --- */

static enum err heartbeat(struct op *op, struct tx *tx)
{
    const struct heartbeat_input *in = op->input;
    struct job job = {0};
    struct run_txn m = {0};
    enum err e = find_job(op, &tx->read, in->job_id, &job);
    if (e == ERR_OK && job_is_of_entity(&job))
        return entity_call_heartbeat(op, tx, in, &job);
    if (e == ERR_OK)
        e = run_txn_load(&m, tx, job.run, &op->problem);
    if (e != ERR_OK)
        return e;
    bool current = lease_is_current(tx, &job, in->lease_token);
    bool cancelled = current && job.state == JOB_CANCELLED;
    if (!current || (job.state != JOB_RUNNING && !cancelled))
        return refuse_stale(op, &m, &job, in->lease_token, "The lease has expired");
    struct job renewed = job;
    if (!cancelled) {
        renewed.due_at = lease_end(&m, &job, job.started_at);
        if (in->note.ptr != NULL)
            renewed.note = in->note;
        e = job_row_touch(tx, &job, &renewed);
        if (e != ERR_OK)
            return problem_set(&op->problem, e, "Cannot renew the lease");
    }
    op->answer.changed_nothing = cancelled;
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "job_id", job.id);
    json_add_time(&o, "lease_expires_at", cancelled ? -1 : renewed.due_at);
    json_add_bool(&o, "cancel_requested", cancelled);
    json_close(&o, '}');
    return ERR_OK;
}

const struct use_case UC_HEARTBEAT = {.name = "heartbeat", .write = heartbeat};

static enum err release_job(struct op *op, struct tx *tx)
{
    const struct heartbeat_input *in = op->input;
    struct job job = {0};
    struct run_txn m = {0};
    enum err e = find_job(op, &tx->read, in->job_id, &job);
    if (e == ERR_OK && job_is_of_entity(&job))
        return entity_call_release(op, tx, in, &job);
    if (e == ERR_OK)
        e = run_txn_load(&m, tx, job.run, &op->problem);
    if (e != ERR_OK)
        return e;
    if (!lease_is_current(tx, &job, in->lease_token))
        return refuse_stale(op, &m, &job, in->lease_token, "The lease has expired");
    struct json_out o = json_out_to(&op->answer.body);
    if (job.state == JOB_PENDING) { /* again */
        op->answer.changed_nothing = true;
        answer_finished(&o, &job, "released", &m);
        return ERR_OK;
    }
    if (job.state != JOB_RUNNING)
        return refuse_stale(op, &m, &job, in->lease_token, "The lease has expired");
    e = job_change(&m, &job, JOB_ON_RELEASE);
    if (e == ERR_OK && m.run.status == RUN_PAUSED)
        e = job_change(&m, &job, JOB_ON_HOLD);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot release the job");
    answer_finished(&o, &job, "released", &m);
    return ERR_OK;
}

const struct use_case UC_RELEASE_JOB = {.name = "release_job", .write = release_job};

static enum err get_job(struct op *op, struct read_tx *tx)
{
    const struct get_job_input *in = op->input;
    struct job job = {0};
    struct json_out o = json_out_to(&op->answer.body);
    enum err e = find_job(op, tx, in->job_id, &job);
    return e == ERR_OK ? job_view(tx, &job, &op->problem, &o) : e;
}

const struct use_case UC_GET_JOB = {.name = "get_job", .read = get_job};
