/* Making and changing one job inside a transaction. */
#include "core/run/job_txn.h"

#include "base/limits.h"
#include "core/run/run_trace.h"
#include "core/txn/attempts.h"
#include "domain/retry/retry.h"

/* --- the timeline --- */

static enum err add_event(struct run_txn *m, enum event_type type, const struct job *job,
                          struct str data)
{
    unsigned flags = event_type_flags(type);
    int64_t offered = flags & EVENT_OFFERS_JOB ? job->ordinal : -1;
    if (!(flags & EVENT_NAMED_BY_JOB))
        return run_txn_add_named_event(m, type, data, offered, STR_NONE);
    struct buf id;
    buf_init(&id, UUID_TEXT_LEN);
    buf_put_uuid(&id, job->id);
    enum err e =
        buf_ok(&id) ? run_txn_add_named_event(m, type, data, offered, buf_str(&id)) : ERR_NO_MEMORY;
    buf_release(&id);
    return e;
}

/* With a further member, as JSON; ptr NULL: none. */
static enum err tell(struct run_txn *m, enum event_type type, const struct job *job,
                     const char *name, struct str value)
{
    struct buf data;
    buf_init(&data, 8 * KIB + 2 * ATTEMPT_ERROR_MAX);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "job_id", job->id);
    json_add_text(&o, "step", job_step(m->def, job)->name);
    if (job_step(m->def, job)->for_each != NULL && !job->undo)
        json_add_int(&o, "item", job->item);
    if (job->undo)
        json_add_bool(&o, "compensates", true);
    json_add_int(&o, "attempt", job->attempt);
    if (job->worker.ptr != NULL)
        json_add_text(&o, "worker_id", job->worker);
    if (job->state == JOB_SCHEDULED && job->due_at >= 0)
        json_add_time(&o, "due_at", job->due_at);
    if (value.ptr != NULL)
        json_add_raw(&o, name, value);
    json_close(&o, '}');
    enum err e = buf_ok(&data) ? add_event(m, type, job, buf_str(&data)) : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

enum err job_add_event(struct run_txn *m, enum event_type type, const struct job *job)
{
    return tell(m, type, job, NULL, STR_NONE);
}

enum err job_add_event_with(struct run_txn *m, enum event_type type, const struct job *job,
                            const char *name, struct str value)
{
    assert(value.ptr != NULL);
    return tell(m, type, job, name, value);
}

static enum err tell_with_error(struct run_txn *m, enum event_type type, const struct job *job)
{
    struct str error = attempt_error(&m->tx->read, job->error);
    return job->error.ptr == NULL || error.ptr != NULL ? tell(m, type, job, "error", error)
                                                       : ERR_NO_MEMORY;
}

/* --- making one --- */

struct job job_blank(const struct run_txn *m, size_t step, int64_t ordinal, int64_t item)
{
    const struct step_def *def = &m->def->steps[step];
    struct job job = job_row_blank(m->tx, m->run.num, ordinal, m->run.tenant);
    job.id = ordinal == 1 ? jobs_first_id(m->run.id) : jobs_new_id(m->tx->env, job.owner, ordinal);
    job.step = (int64_t)step;
    job.queue = def->queue.ptr != NULL ? def->queue : STR("");
    job.urgency = -m->run.priority;
    job.item = item;
    return job;
}

/* What the timeline says of a new job, by the state that it begins with. */
static const enum event_type CREATED_AS[JOB_STATE_COUNT] = {
    [JOB_APPROVAL] = EVENT_JOB_CREATED,    [JOB_PENDING] = EVENT_JOB_CREATED,
    [JOB_SCHEDULED] = EVENT_JOB_SCHEDULED, [JOB_DISPATCHED] = EVENT_JOB_DISPATCHED,
    [JOB_SUCCEEDED] = EVENT_JOB_SUCCEEDED, [JOB_FAILED] = EVENT_JOB_FAILED,
};

enum err job_create(struct run_txn *m, struct job *job)
{
    bool waits = job->state == JOB_PENDING || job->state == JOB_APPROVAL;
    if (!waits) {
        job->attempt = 1;
        job->started_at = m->tx->now_ms;
    }
    if (job_has_ended(job->state))
        job->finished_at = m->tx->now_ms;
    if (job->state == JOB_FAILED)
        job->dead_at = m->tx->now_ms;
    bool with_run = m->is_new && job->ordinal == 1;
    enum err e = with_run ? job_row_create_with_run(m->tx, job) : job_row_create(m->tx, job);
    if (e == ERR_OK) /* a new job has an error only if it has failed */
        e = tell_with_error(m, CREATED_AS[job->state], job);
    if (e == ERR_OK)
        e = run_trace_job_changed(m, JOB_STATE_COUNT, JOB_EVENT_COUNT, job);
    if (e == ERR_OK && m->views != NULL && !job->undo && !job_is_question(job)) {
        m->views[job->step].job = *job;
        m->views[job->step].has_job = true;
    }
    return e;
}

/* --- changing one --- */

static const enum event_type EVENT_TYPES[] = {
    [JOB_ON_CLAIM] = EVENT_JOB_CLAIMED,       [JOB_ON_EXPIRE] = EVENT_JOB_LEASE_EXPIRED,
    [JOB_ON_COMPLETE] = EVENT_JOB_SUCCEEDED,  [JOB_ON_FAIL] = EVENT_JOB_FAILED,
    [JOB_ON_FIRE] = EVENT_JOB_SUCCEEDED,      [JOB_ON_CANCEL] = EVENT_JOB_CANCELLED,
    [JOB_ON_DISPATCH] = EVENT_JOB_DISPATCHED, [JOB_ON_RETRY] = EVENT_JOB_RETRY_SCHEDULED,
    [JOB_ON_WAKE] = EVENT_JOB_CREATED,        [JOB_ON_RELEASE] = EVENT_JOB_RELEASED,
    [JOB_ON_TIME_OUT] = EVENT_JOB_TIMED_OUT,  [JOB_ON_HOLD] = EVENT_JOB_HELD,
    [JOB_ON_REVIVE] = EVENT_JOB_RETRIED,      [JOB_ON_APPROVE] = EVENT_JOB_APPROVED,
    [JOB_ON_DENY] = EVENT_JOB_DENIED,         [JOB_ON_SUSPEND] = EVENT_JOB_SUSPENDED,
    [JOB_ON_RESUME] = EVENT_JOB_RESUMED,
};
static_assert(ARRAY_LEN(EVENT_TYPES) == JOB_EVENT_COUNT, "one type per event");

/* job->error is what this event is about, not what an earlier attempt left. */
static bool is_about_error(enum job_event on)
{
    return on == JOB_ON_EXPIRE || on == JOB_ON_FAIL || on == JOB_ON_RETRY ||
           on == JOB_ON_TIME_OUT || on == JOB_ON_DENY;
}

static enum err move(struct run_txn *m, struct job *job, enum job_event on)
{
    enum job_state from = job->state;
    enum err e = job_row_change(m->tx, job, on);
    return e == ERR_OK ? run_trace_job_changed(m, from, on, job) : e;
}

enum err job_change(struct run_txn *m, struct job *job, enum job_event on)
{
    enum err e = move(m, job, on);
    if (e != ERR_OK)
        return e;
    return is_about_error(on) ? tell_with_error(m, EVENT_TYPES[on], job)
                              : job_add_event(m, EVENT_TYPES[on], job);
}

enum err job_change_saying(struct run_txn *m, struct job *job, enum job_event on, const char *name,
                           struct str value)
{
    enum err e = move(m, job, on);
    return e == ERR_OK ? job_add_event_with(m, EVENT_TYPES[on], job, name, value) : e;
}

/* --- the end of one --- */

enum err job_ended(struct run_txn *m, const struct job *job)
{
    static const enum step_status BY_STATE[JOB_STATE_COUNT] = {
        [JOB_SUCCEEDED] = STEP_IS_SUCCEEDED,
        [JOB_FAILED] = STEP_IS_FAILED,
        [JOB_TIMED_OUT] = STEP_IS_TIMED_OUT,
        [JOB_DENIED] = STEP_IS_DENIED,
    };
    size_t step = (size_t)job->step;
    assert(job_has_ended(job->state));
    if (!advance_expects(&m->progress, step, job->undo))
        return ERR_DAMAGED;
    if (job->undo)
        advance_undo_over(&m->progress, step, job->state == JOB_SUCCEEDED);
    else
        advance_job_over(m->def, &m->progress, step, BY_STATE[job->state]);
    if (m->step_values != NULL)
        m->step_values[step].value = NULL;
    if (m->views != NULL && !job->undo) {
        m->views[step].job = *job;
        m->views[step].has_job = true;
    }
    return ERR_OK;
}

/* --- lost attempts --- */

static const struct retry_policy *policy_of(const struct run_txn *m, const struct job *job)
{
    return &job_step(m->def, job)->retry;
}

static enum err schedule_again(struct run_txn *m, struct job *job, int64_t delay_ms_least)
{
    uint64_t seed;
    env_random(m->tx->env, &seed, sizeof(seed));
    int64_t delay = retry_delay_ms(policy_of(m, job), MAX(job->attempt, (int64_t)1), seed);
    job->due_at = m->tx->now_ms + MAX(delay, delay_ms_least);
    return job_change(m, job, JOB_ON_RETRY);
}

static enum err fail_for_good(struct run_txn *m, struct job *job, enum job_event on)
{
    job->dead_at = m->tx->now_ms;
    enum err e = job_change(m, job, on);
    return e == ERR_OK ? job_ended(m, job) : e;
}

enum err job_attempt_lost(struct run_txn *m, struct job *job, const struct attempt_loss *loss)
{
    job->error = loss->error;
    job->output = STR_NONE;
    enum err e = attempt_lost(m->tx, job, loss->timed_out ? ATTEMPT_TIMED_OUT : ATTEMPT_FAILED);
    if (e != ERR_OK)
        return e;
    if (retry_after_failure(policy_of(m, job), job->attempt, loss->code, loss->retryable))
        return schedule_again(m, job, loss->delay_ms_least);
    return fail_for_good(m, job, loss->timed_out ? JOB_ON_TIME_OUT : JOB_ON_FAIL);
}

enum err job_attempt_failed(struct run_txn *m, struct job *job, struct str error, struct str code,
                            bool retryable)
{
    struct attempt_loss loss = {.error = error, .code = code, .retryable = retryable};
    return job_attempt_lost(m, job, &loss);
}

/* The time of a call is kept by who makes it: its timer fires only if nobody does any more. */
static bool is_out_of_time(const struct run_txn *m, const struct job *job)
{
    int64_t timeout_ms = job_step(m->def, job)->timeout_ms;
    return job->state != JOB_DISPATCHED && timeout_ms >= 0 &&
           job->started_at + timeout_ms <= m->tx->now_ms;
}

static enum err note_expiry(struct run_txn *m, struct job *job)
{
    job->error =
        error_json(m->tx, "LEASE_EXPIRED",
                   job->state == JOB_DISPATCHED ? STR("The server stopped during the call")
                                                : STR("The lease expired without a heartbeat"));
    return job->error.ptr != NULL ? attempt_lost(m->tx, job, ATTEMPT_LEASE_EXPIRED) : ERR_NO_MEMORY;
}

static enum err offer_again(struct run_txn *m, struct job *job)
{
    enum err e = job_change(m, job, JOB_ON_EXPIRE);
    return e == ERR_OK && m->run.status == RUN_PAUSED ? job_change(m, job, JOB_ON_HOLD) : e;
}

enum err job_attempt_expired(struct run_txn *m, struct job *job)
{
    if (is_out_of_time(m, job)) {
        struct attempt_loss late = {
            .error = error_json(m->tx, "TIMED_OUT", STR("The attempt took longer than timeout_ms")),
            .code = STR("TIMED_OUT"),
            .retryable = true,
            .timed_out = true,
        };
        return late.error.ptr != NULL ? job_attempt_lost(m, job, &late) : ERR_NO_MEMORY;
    }
    enum err e = note_expiry(m, job);
    if (e != ERR_OK)
        return e;
    if (!retry_after_expiry(policy_of(m, job), job->attempt))
        return fail_for_good(m, job, JOB_ON_FAIL);
    return offer_again(m, job);
}

enum err job_call_given_back(struct run_txn *m, struct job *job)
{
    assert(job->state == JOB_DISPATCHED);
    enum err e = note_expiry(m, job);
    return e == ERR_OK ? offer_again(m, job) : e;
}
