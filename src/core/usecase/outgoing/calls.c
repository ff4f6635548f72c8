/* The calls of http steps. */
#include "core/usecase/outgoing/calls.h"

#include "core/run/job_txn.h"
#include "core/run/run_advance.h"
#include "core/run/run_trace.h"
#include "core/usecase/execute.h"

void call_result_init(struct call_result *r)
{
    *r = (struct call_result){.kind = CALL_RESULT_NOTHING};
    buf_init(&r->text, CALL_OUTPUT_MAX);
}

void call_result_release(struct call_result *r)
{
    buf_release(&r->text);
}

/* --- taking --- */

struct take {
    struct op *op;
    struct tx *tx;
    const struct take_outgoing_input *in;
    struct taken_outgoing *out;
    struct outgoing_job **last;
    size_t count;
};

static int64_t timeout_of(const struct step_def *step)
{
    return step->timeout_ms < 0 ? CALL_TIMEOUT_MS_DEFAULT
                                : MIN(step->timeout_ms, (int64_t)CALL_TIMEOUT_MS_MAX);
}

static void release(struct outgoing_job *job)
{
    call_result_release(&CONTAINER_OF(job, struct call_job, out)->result);
}

static struct call_job *call_job_new(const struct run_txn *m, const struct job *job)
{
    struct str input = job->input;
    struct str state = m->run.tracestate;
    struct call_job *taken = calloc(1, sizeof(*taken) + input.len + state.len);
    if (taken == NULL)
        return NULL;
    taken->out.place = (struct outgoing_place){.tenant = job->tenant, .run = job->owner};
    taken->out.release = release;
    taken->ordinal = job->ordinal;
    taken->epoch = job->lease_epoch;
    taken->id = job->id;
    taken->timeout_ms = timeout_of(job_step(m->def, job));
    taken->input = (struct str){taken->text, input.len};
    if (input.len > 0)
        memcpy(taken->text, input.ptr, input.len);
    if (state.ptr != NULL) {
        taken->tracestate = (struct str){taken->text + input.len, state.len};
        memcpy(taken->text + input.len, state.ptr, state.len);
    }
    struct trace_span span = attempt_span(&m->run, job);
    trace_write(&span, taken->traceparent);
    taken->trace_is_given = m->run.traceparent.ptr != NULL;
    call_result_init(&taken->result);
    return taken;
}

static enum err take_one(struct take *t, struct job *job)
{
    struct run_txn m;
    enum err e = run_txn_load(&m, t->tx, job->owner, &t->op->problem);
    if (e != ERR_OK)
        return e;
    job->due_at = t->tx->now_ms + timeout_of(job_step(m.def, job)) + CALL_GRACE_MS;
    e = job_change(&m, job, JOB_ON_DISPATCH);
    if (e != ERR_OK)
        return e;
    struct call_job *taken = call_job_new(&m, job);
    if (taken == NULL)
        return ERR_NO_MEMORY;
    *t->last = &taken->out;
    t->last = &taken->out.next;
    t->count++;
    return ERR_OK;
}

/* How many more of the tenant's calls may be under way. */
static size_t room_of(const struct take *t, int64_t tenant)
{
    size_t busy = 0;
    for (size_t i = 0; i < t->in->under_way_count; i++)
        busy += t->in->under_way[i].tenant == tenant;
    for (const struct outgoing_job *job = t->out->first; job != NULL; job = job->next)
        busy += job->place.tenant == tenant;
    size_t room = busy < CALLS_PER_TENANT_MAX ? CALLS_PER_TENANT_MAX - busy : 0;
    return MIN(room, t->in->room - t->count);
}

static enum err take_from(struct take *t, int64_t num)
{
    struct tenant *tenant = NULL;
    enum err e = read_tx_tenant_num(&t->tx->read, num, &tenant);
    if (e != ERR_OK)
        return e;
    size_t room = room_of(t, num);
    size_t most = MIN(room, (size_t)MAX(tenant->weight, (int64_t)1));
    t->out->left_some |= room == 0;
    for (size_t i = 0; i < most; i++) {
        struct job job;
        bool found = false;
        e = jobs_next(t->tx->db, num, STR(HTTP_QUEUE), &t->tx->arena, &found, &job);
        if (e != ERR_OK || !found)
            return e;
        e = take_one(t, &job);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

/* Goes around the tenants that have something to call, from where the last take ended, until a
 * whole round takes nothing. */
static enum err take_turns(struct take *t)
{
    bool whole = t->out->turn == 0;
    size_t before = 0;
    while (t->count < t->in->room) {
        int64_t tenant = 0;
        bool found = false;
        enum err e = jobs_next_tenant(t->tx->db, STR(HTTP_QUEUE), t->out->turn, &found, &tenant);
        if (e != ERR_OK)
            return e;
        if (!found && whole && t->count == before)
            return ERR_OK;
        t->out->turn = tenant; /* 0 at the end of a round */
        if (!found) {
            whole = true;
            before = t->count;
            continue;
        }
        e = take_from(t, tenant);
        if (e != ERR_OK)
            return e;
    }
    t->out->left_some = true;
    return ERR_OK;
}

static enum err take_calls(struct op *op, struct tx *tx)
{
    const struct take_outgoing_input *in = op->input;
    outgoing_jobs_free(&in->taken->first); /* those of a run that was rolled back */
    in->taken->left_some = in->taken->unfinished = false;
    in->taken->next_at = -1;
    struct take t = {.op = op, .tx = tx, .in = in, .out = in->taken, .last = &in->taken->first};
    enum err e = take_turns(&t);
    op->answer.changed_nothing = t.count == 0;
    if (e == ERR_OK)
        return ERR_OK;
    /* Some may have been taken: only a rollback undoes that. */
    return problem_set(&op->problem, err_after_change(e), "Cannot claim jobs for HTTP calls: %s",
                       err_code(e));
}

const struct use_case UC_TAKE_CALLS = {.name = "take_calls", .write = take_calls};

/* --- finishing --- */

static enum err apply(struct run_txn *m, struct job *job, const struct call_result *r)
{
    enum err e = ERR_OK;
    switch (r->kind) {
    case CALL_RESULT_NOTHING:
        return job_call_given_back(m, job);
    case CALL_RESULT_ERROR:
        return job_attempt_lost(m, job,
                                &(struct attempt_loss){.error = buf_str(&r->text),
                                                       .code = str_of(r->code),
                                                       .retryable = r->retryable,
                                                       .timed_out = r->timed_out,
                                                       .delay_ms_least = r->retry_after_ms});
    case CALL_RESULT_OUTPUT:
        job->output = buf_str(&r->text);
        job->error = STR_NONE;
        e = job_change(m, job, JOB_ON_COMPLETE);
        return e == ERR_OK ? job_ended(m, job) : e;
    }
    assert(!"unknown kind");
    return ERR_INTERNAL;
}

/* *ret_current: this hand-out is still the job's last one. */
static enum err finish(const struct call_job *in, struct tx *tx, struct problem *p,
                       bool *ret_current)
{
    struct job job;
    struct run_txn m;
    bool found = false;
    int64_t run = in->out.place.run;
    enum err e = jobs_find_at(tx->db, run, in->ordinal, &tx->arena, &found, &job);
    if (e != ERR_OK)
        return e;
    *ret_current = found && job.state == JOB_DISPATCHED && job.lease_epoch == in->epoch;
    if (!*ret_current)
        return ERR_OK; /* the run was cancelled, or the lease has expired */
    e = run_txn_load(&m, tx, run, p);
    if (e != ERR_OK)
        return e;
    e = apply(&m, &job, &in->result);
    if (e != ERR_OK || !job_has_ended(job.state))
        return e;
    return run_txn_advance(&m);
}

static enum err finish_call(struct op *op, struct tx *tx)
{
    bool current = true;
    enum err e = finish(op->input, tx, &op->problem, &current);
    op->answer.changed_nothing = !current;
    if (e == ERR_OK)
        return ERR_OK;
    return problem_set(&op->problem, err_after_change(e),
                       "Cannot store the result of an HTTP call: %s", err_code(e));
}

const struct use_case UC_FINISH_CALL = {.name = "finish_call", .write = finish_call};
