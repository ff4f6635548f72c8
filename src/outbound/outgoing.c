/* Outgoing calls of every kind. */
#include "outbound/outgoing.h"

#include "base/log.h"
#include "base/metrics.h"
#include "bus/http_caller.h"
#include "outbound/http_step.h"
#include "outbound/webhook_call.h"

#include <errno.h>
#include <unistd.h>

enum { RETRY_MS = 1000 }; /* after the writer could not take or store something */

static const struct outgoing_kind *const KINDS[OUTGOING_COUNT] = {
#define X(symbol, kind) [symbol] = &(kind),
    OUTGOING_KINDS(X)
#undef X
};

/* The work of one kind. */
struct queue {
    struct outgoing *out;
    const struct outgoing_kind *kind;
    atomic_bool *ready;
    struct metric *outcomes;
    struct http_caller *caller;
    struct outgoing_job *under_way[CALLS_IN_FLIGHT_MAX]; /* from taken to stored */
    size_t count;

    struct op take;
    struct take_outgoing_input take_input;
    struct taken_outgoing taken;
    bool taking;
    bool taken_before;  /* since the start */
    bool left_some;     /* the last take said that there is more */
    bool freed;         /* there has been room since then */
    int64_t take_at_ms; /* not before (monotonic) */
    int64_t due_at;     /* by the wall clock; -1: nothing waits for a time */

    struct outgoing_job *unsaved; /* their results could not be stored; linked by `next` */
    int64_t save_at_ms;
};

struct outgoing {
    struct outgoing_config config;
    struct queue queues[OUTGOING_COUNT];
    bool draining;
    bool aborted;
    int64_t abort_at_ms;
};

/* --- results --- */

static void remove_job(struct queue *q, struct outgoing_job *job)
{
    size_t i = 0;
    while (q->under_way[i] != job)
        i++;
    assert(i < q->count);
    q->under_way[i] = q->under_way[--q->count];
    q->under_way[q->count] = NULL;
    q->freed = true;
    outgoing_job_free(job);
}

/* Worth another try: nothing else knows the result. */
static bool may_pass(enum err e)
{
    return e == ERR_STORE_BUSY || e == ERR_STORE_FULL || e == ERR_NO_MEMORY;
}

static void saved(struct op *op)
{
    struct outgoing_job *job = CONTAINER_OF(op, struct outgoing_job, op);
    struct queue *q = op->owner;
    if (op->err != ERR_OK && may_pass(op->err) && !q->out->draining) {
        job->next = q->unsaved;
        q->unsaved = job;
        q->save_at_ms = env_mono_ms(q->out->config.env) + RETRY_MS;
        return;
    }
    if (op->err != ERR_OK)
        LOG(LOG_ERROR, "a call was made, but its result is lost; the call will be made again",
            LOG_Z("kind", q->kind->name), LOG_N("run", job->place.run),
            LOG_Z("why", op->problem.detail));
    else if (op->answer.outcome != NULL && q->outcomes != NULL)
        metric_add(q->outcomes, str_of(op->answer.outcome), STR_NONE, 1);
    remove_job(q, job);
}

static void save(struct queue *q, struct outgoing_job *job)
{
    job->next = NULL;
    q->out->config.submit(q->out->config.ctx, &job->op);
}

static void save_again(struct queue *q)
{
    struct outgoing_job *job = q->unsaved;
    q->unsaved = NULL;
    while (job != NULL) {
        struct outgoing_job *next = job->next;
        save(q, job);
        job = next;
    }
}

/* On the caller's thread: reading a megabyte of JSON would hold up the loop. */
static void call_over(struct http_call *call)
{
    struct outgoing_job *job = call->owner;
    const struct queue *q = job->op.owner;
    q->kind->read_result(job, call, env_now_ms(q->out->config.env));
}

static void collect(struct queue *q)
{
    struct http_call *call = http_caller_collect(q->caller);
    while (call != NULL) {
        struct http_call *next = call->next;
        save(q, call->owner);
        http_call_free(call);
        call = next;
    }
}

/* --- taking work --- */

/* False when no call is under way: then the job's result says why. */
static bool call_begin(struct queue *q, struct outgoing_job *job)
{
    if (q->out->draining)
        return false; /* a new job's result is that nothing was done */
    struct http_call *call = q->kind->shape(job, env_now_ms(q->out->config.env));
    if (call == NULL)
        return false;
    call->owner = job;
    if (http_caller_submit(q->caller, call))
        return true;
    http_call_free(call);
    q->kind->refuse(job, CALL_FAILED, "Too many calls are waiting");
    return false;
}

static void begin(struct queue *q, struct outgoing_job *job)
{
    assert(q->count < CALLS_IN_FLIGHT_MAX);
    q->under_way[q->count++] = job;
    op_init(&job->op, q->kind->finish);
    job->op.input = job;
    job->op.owner = q;
    job->op.done = saved;
    job->op.bytes = sizeof(*job);
    if (!call_begin(q, job))
        save(q, job);
}

static void taken(struct op *op)
{
    struct queue *q = op->owner;
    struct outgoing_job *job = q->taken.first;
    bool ok = op->err == ERR_OK;
    q->taken.first = NULL;
    q->taking = false;
    q->left_some = q->taken.left_some || q->taken.unfinished || !ok;
    q->freed |= q->taken.unfinished || !ok;
    if (!ok) {
        LOG(LOG_WARN, "work could not be taken; it is tried again", LOG_Z("kind", q->kind->name),
            LOG_Z("why", op->problem.detail));
        q->take_at_ms = env_mono_ms(q->out->config.env) + RETRY_MS;
        op_release(op);
        outgoing_jobs_free(&job);
        return;
    }
    op_release(op);
    q->taken_before = true;
    q->due_at = q->taken.next_at;
    size_t count = 0;
    for (; job != NULL; count++) {
        struct outgoing_job *next = job->next;
        job->next = NULL;
        begin(q, job);
        job = next;
    }
    q->freed |= count == q->kind->taken_per_turn_max; /* it was the turn that was full */
}

static void take(struct queue *q)
{
    q->freed = false;
    q->taking = true;
    q->take_input.room = MIN(CALLS_IN_FLIGHT_MAX - q->count, q->kind->taken_per_turn_max);
    q->take_input.under_way_count = q->count;
    for (size_t i = 0; i < q->count; i++)
        q->take_input.under_way[i] = q->under_way[i]->place;
    q->take_input.first = !q->taken_before;
    q->take_input.taken = &q->taken;
    op_init(&q->take, q->kind->take);
    q->take.input = &q->take_input;
    q->take.owner = q;
    q->take.done = taken;
    q->out->config.submit(q->out->config.ctx, &q->take);
}

static void tick(struct queue *q, int64_t mono_ms)
{
    bool draining = q->out->draining;
    if (q->unsaved != NULL && (mono_ms >= q->save_at_ms || draining))
        save_again(q);
    if (draining || q->taking || mono_ms < q->take_at_ms || q->count == CALLS_IN_FLIGHT_MAX)
        return;
    bool due = q->due_at >= 0 && q->due_at <= env_now_ms(q->out->config.env);
    if (atomic_exchange(q->ready, false) || (q->left_some && q->freed) || due)
        take(q);
}

/* --- all queues --- */

void outgoing_collect(struct outgoing *out)
{
    for (size_t i = 0; i < OUTGOING_COUNT; i++)
        collect(&out->queues[i]);
}

void outgoing_tick(struct outgoing *out, int64_t mono_ms)
{
    bool abort = out->draining && !out->aborted && mono_ms >= out->abort_at_ms;
    out->aborted |= abort;
    for (size_t i = 0; i < OUTGOING_COUNT; i++) {
        if (abort)
            http_caller_abort(out->queues[i].caller);
        tick(&out->queues[i], mono_ms);
    }
}

void outgoing_drain(struct outgoing *out, int64_t mono_ms)
{
    if (!out->draining)
        out->abort_at_ms = mono_ms + CALL_DRAIN_MS;
    out->draining = true;
}

bool outgoing_idle(const struct outgoing *out)
{
    for (size_t i = 0; i < OUTGOING_COUNT; i++) {
        if (out->queues[i].count > 0 || out->queues[i].taking)
            return false;
    }
    return true;
}

/* --- life --- */

static bool queue_init(struct outgoing *out, enum outgoing_queue i)
{
    struct queue *q = &out->queues[i];
    struct http_caller_config caller = {
        .reach = out->config.reach,
        .event_fd = out->config.event_fd,
        .over = call_over,
    };
    q->out = out;
    q->kind = KINDS[i];
    q->ready = out->config.ready[i];
    q->outcomes = out->config.outcomes[i];
    q->due_at = 0; /* an earlier process may have left some */
    q->caller = http_caller_new(&caller);
    return q->caller != NULL;
}

enum err outgoing_start(const struct outgoing_config *config, struct problem *p,
                        struct outgoing **ret)
{
    struct outgoing *out = calloc(1, sizeof(*out));
    if (out == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for outgoing calls");
    out->config = *config;
    bool ok = true;
    for (size_t i = 0; i < OUTGOING_COUNT; i++)
        ok &= queue_init(out, (enum outgoing_queue)i);
    if (!ok) {
        outgoing_free(out);
        return problem_set(p, ERR_NO_MEMORY, "No memory for outgoing calls");
    }
    /* The first take comes at once. */
    uint64_t one = 1;
    ssize_t n = write(config->event_fd, &one, sizeof(one));
    assert(n == sizeof(one) || errno == EAGAIN);
    *ret = out;
    return ERR_OK;
}

void outgoing_free(struct outgoing *out)
{
    if (out == NULL)
        return;
    assert(outgoing_idle(out));
    for (size_t i = 0; i < OUTGOING_COUNT; i++)
        http_caller_free(out->queues[i].caller);
    free(out);
}
