/* A job's row, its timer and its place in its queue. */
#include "core/txn/job_row.h"

#include "base/log.h"
#include "core/txn/job_timers.h"
#include "store/run/approvals.h"

/* The timer that belongs to a job in this state, if it has one. */
static bool timer_of(const struct job *job, struct timer *ret)
{
    if (job->due_at < 0 || job_has_ended(job->state))
        return false;
    *ret = (struct timer){job->due_at, job->owner, job->ordinal, job->lease_epoch, job->tenant};
    return true;
}

static enum err arm(struct tx *tx, const struct job *job)
{
    struct timer timer;
    return timer_of(job, &timer) ? job_timer_arm(tx, &timer) : ERR_OK;
}

static enum err disarm(struct tx *tx, const struct job *job)
{
    if (job->armed_at < 0)
        return ERR_OK;
    struct timer timer = {job->armed_at, job->owner, job->ordinal, job->lease_epoch, job->tenant};
    return job_timer_disarm(tx, &timer);
}

/* The job lies in its queue: a worker may be waiting for it, or the server itself. */
static enum err offer(struct tx *tx, const struct job *job)
{
    if (!str_is(job->queue, HTTP_QUEUE))
        return tx_wake_queue(tx, job, job->queue);
    tx_note(tx, EFFECT_CALLS_READY);
    return ERR_OK;
}

struct job job_row_blank(const struct tx *tx, int64_t owner, int64_t ordinal, int64_t tenant)
{
    return (struct job){
        .owner = owner,
        .ordinal = ordinal,
        .tenant = tenant,
        .state = JOB_PENDING,
        .due_at = -1,
        .armed_at = -1,
        .created_at = tx->now_ms,
        .started_at = -1,
        .finished_at = -1,
        .lease_ms = -1,
        .dead_at = -1,
    };
}

/* It is stored, or will be. */
static enum err created(struct tx *tx, struct job *job)
{
    enum err e = arm(tx, job);
    if (e == ERR_OK && job->state == JOB_PENDING)
        e = offer(tx, job);
    job->armed_at = job->due_at;
    return e;
}

enum err job_row_create(struct tx *tx, struct job *job)
{
    enum err e = jobs_insert(tx->db, job);
    return e == ERR_OK ? created(tx, job) : e;
}

enum err job_row_create_with_run(struct tx *tx, struct job *job)
{
    enum err e = jobs_insert_with_run(tx->db, job);
    tx->touched++; /* it may wait in memory */
    return e == ERR_OK ? created(tx, job) : e;
}

static bool keeps_due(enum job_event on)
{
    return on == JOB_ON_CLAIM || on == JOB_ON_DISPATCH || on == JOB_ON_RETRY ||
           on == JOB_ON_SUSPEND;
}

static void change(struct job *job, enum job_event on, enum job_state to, int64_t now_ms)
{
    job->state = to;
    if (on == JOB_ON_CLAIM || on == JOB_ON_DISPATCH) {
        job->attempt++;
        job->lease_epoch++;
        job->started_at = now_ms;
        job->note = STR_NONE;
    }
    if (on == JOB_ON_RELEASE || on == JOB_ON_RESUME)
        job->attempt--; /* nothing was tried, or the next claim goes on with the same attempt */
    if (!keeps_due(on))
        job->due_at = -1;
    if (to == JOB_PENDING || to == JOB_SCHEDULED || to == JOB_SUSPENDED)
        job->lease_ms = -1;
    if (on == JOB_ON_REVIVE) {
        job->finished_at = job->dead_at = -1;
        job->attempt = 0; /* whoever asks for it grants as many as the first time */
        job->error = job->output = STR_NONE;
    }
    if (job_has_ended(to))
        job->finished_at = now_ms;
}

enum err job_row_change(struct tx *tx, struct job *job, enum job_event on)
{
    struct job old = *job;
    enum job_state to;
    enum err e = job_decide(old.state, on, &to);
    if (e == ERR_OK)
        e = disarm(tx, &old);
    if (e != ERR_OK)
        return e;
    change(job, on, to, tx->now_ms);
    e = jobs_update(tx->db, job, old.state, old.lease_epoch);
    job->in_run = false;
    if (e == ERR_OK && old.state == JOB_APPROVAL) /* unless that has been decided */
        e = approvals_void(tx->db, job->owner, job->ordinal);
    if (e == ERR_OK)
        e = arm(tx, job);
    if (e == ERR_OK && to == JOB_PENDING)
        e = offer(tx, job);
    job->armed_at = job->due_at;
    return e;
}

enum err job_row_touch(struct tx *tx, const struct job *old, const struct job *job)
{
    struct timer timer;
    enum err e = ERR_OK;
    assert(old->state == job->state && old->lease_epoch == job->lease_epoch);
    if (timer_of(old, &timer) && old->due_at != job->due_at)
        e = job_timer_disarm(tx, &timer);
    if (e == ERR_OK)
        e = jobs_update(tx->db, job, old->state, old->lease_epoch);
    if (e == ERR_OK && old->due_at != job->due_at)
        e = arm(tx, job);
    return e;
}

enum err job_row_remove(struct tx *tx, const struct job *job)
{
    enum err e = disarm(tx, job);
    return e == ERR_OK ? jobs_remove(tx->db, job->owner, job->ordinal) : e;
}

bool job_is_question(const struct job *job)
{
    return str_is(job->queue, QUESTION_QUEUE);
}

const struct step_def *job_step(const struct definition *def, const struct job *job)
{
    static const struct step_def NONE = {
        .name = {"?", 1}, .handler = {"", 0}, .retry = {.max_attempts = 1}, .timeout_ms = -1};
    if (job->step >= 0 && (size_t)job->step < def->step_count)
        return &def->steps[job->step];
    LOG(LOG_ERROR, "a stored job is damaged: its workflow has no such step",
        LOG_N("run", job->owner), LOG_N("ordinal", job->ordinal), LOG_N("step", job->step));
    return &NONE;
}
