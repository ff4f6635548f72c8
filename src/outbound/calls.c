/* The calls of http steps. */
#include "outbound/calls.h"

#include "base/limits.h"
#include "base/log.h"
#include "bus/http_caller.h"
#include "outbound/http_step.h"

#include <errno.h>
#include <unistd.h>

enum { RETRY_MS = 1000 };

struct calls {
    struct calls_config config;
    struct http_caller *caller;
    struct call_job *under_way[CALLS_IN_FLIGHT_MAX]; /* from taken to stored */
    size_t count;

    struct op take;
    struct take_calls_input take_input;
    struct taken_calls taken;
    bool taking;
    bool left_some;     /* so the last one said */
    bool freed;         /* there has been room since it was asked */
    int64_t take_at_ms; /* not before */

    struct call_job *unsaved; /* results that could not be stored, linked by `next` */
    int64_t save_at_ms;

    bool draining;
    bool aborted;
    int64_t abort_at_ms;
};

/* --- the way back --- */

static void remove_job(struct calls *c, struct call_job *job)
{
    size_t i = 0;
    while (c->under_way[i] != job)
        i++;
    assert(i < c->count);
    c->under_way[i] = c->under_way[--c->count];
    c->under_way[c->count] = NULL;
    c->freed = true;
    call_job_free(job);
}

/* Worth another try: the result is all that there is of the call. */
static bool may_pass(enum err e)
{
    return e == ERR_STORE_BUSY || e == ERR_STORE_FULL || e == ERR_NO_MEMORY;
}

static void saved(struct op *op)
{
    struct call_job *job = CONTAINER_OF(op, struct call_job, op);
    struct calls *c = op->owner;
    if (op->err != ERR_OK && may_pass(op->err) && !c->draining) {
        job->next = c->unsaved;
        c->unsaved = job;
        c->save_at_ms = env_mono_ms(c->config.env) + RETRY_MS;
        return;
    }
    if (op->err != ERR_OK)
        LOG(LOG_ERROR, "the result of a call is lost; it is made again when its lease ends",
            LOG_N("run", job->ticket.run), LOG_Z("why", op->problem.detail));
    remove_job(c, job);
}

static void save(struct calls *c, struct call_job *job)
{
    job->op.input = job;
    job->op.owner = c;
    job->op.done = saved;
    job->op.bytes = job->result.text.len;
    c->config.submit(c->config.ctx, &job->op);
}

static void save_again(struct calls *c)
{
    struct call_job *job = c->unsaved;
    c->unsaved = NULL;
    while (job != NULL) {
        struct call_job *next = job->next;
        save(c, job);
        job = next;
    }
}

/* On the caller's thread: a megabyte of JSON is no work for the loop. */
static void shape_result(struct http_call *call)
{
    struct call_job *job = call->owner;
    http_step_take_result(&job->result, call, env_now_ms(&ENV_SYSTEM));
}

void calls_collect(struct calls *c)
{
    struct http_call *call = http_caller_collect(c->caller);
    while (call != NULL) {
        struct http_call *next = call->next;
        save(c, call->owner);
        http_call_free(call);
        call = next;
    }
}

/* --- the way out --- */

static void begin(struct calls *c, struct call_job *job)
{
    struct problem p;
    struct http_call *call = NULL;
    assert(c->count < CALLS_IN_FLIGHT_MAX);
    c->under_way[c->count++] = job;
    if (c->draining) { /* its result is that there is none */
        save(c, job);
        return;
    }
    problem_init(&p);
    enum err e = http_step_shape(job, &p, &call);
    if (e == ERR_OK) {
        call->owner = job;
        if (!http_caller_submit(c->caller, call)) {
            http_call_free(call);
            e = problem_set(&p, ERR_OVERLOADED, "too many calls are waiting");
        }
    }
    if (e != ERR_OK) {
        http_step_refuse(&job->result, e == ERR_FIELD_INVALID ? CALL_REQUEST_INVALID : CALL_FAILED,
                         p.detail);
        save(c, job);
    }
    problem_release(&p);
}

static struct call_job *take_list(struct taken_calls *taken)
{
    struct call_job *first = taken->first;
    taken->first = NULL;
    return first;
}

static void taken(struct op *op)
{
    struct calls *c = op->owner;
    struct call_job *job = take_list(&c->taken);
    bool ok = op->err == ERR_OK;
    c->taking = false;
    c->left_some = c->taken.left_some || !ok;
    if (!ok) {
        LOG(LOG_WARN, "jobs of http steps could not be taken", LOG_Z("why", op->problem.detail));
        c->freed = true;
        c->take_at_ms = env_mono_ms(c->config.env) + RETRY_MS;
    }
    op_release(op);
    size_t count = 0;
    for (; job != NULL; count++) {
        struct call_job *next = job->next;
        job->next = NULL;
        if (ok)
            begin(c, job);
        else
            call_job_free(job);
        job = next;
    }
    c->freed |= count == CALLS_TAKEN_PER_TURN_MAX; /* it was the turn that was full */
}

static void take(struct calls *c)
{
    c->freed = false;
    c->taking = true;
    c->take_input.room = MIN(CALLS_IN_FLIGHT_MAX - c->count, (size_t)CALLS_TAKEN_PER_TURN_MAX);
    c->take_input.tenant_count = c->count;
    for (size_t i = 0; i < c->count; i++)
        c->take_input.tenants[i] = c->under_way[i]->ticket.tenant;
    c->take_input.taken = &c->taken;
    op_init(&c->take, &UC_TAKE_CALLS);
    c->take.input = &c->take_input;
    c->take.owner = c;
    c->take.done = taken;
    c->config.submit(c->config.ctx, &c->take);
}

void calls_tick(struct calls *c, int64_t mono_ms)
{
    if (c->unsaved != NULL && (mono_ms >= c->save_at_ms || c->draining))
        save_again(c);
    if (c->draining && !c->aborted && mono_ms >= c->abort_at_ms) {
        c->aborted = true;
        http_caller_abort(c->caller);
    }
    if (c->draining || c->taking || mono_ms < c->take_at_ms || c->count == CALLS_IN_FLIGHT_MAX)
        return;
    if (atomic_exchange(c->config.has_calls, false) || (c->left_some && c->freed))
        take(c);
}

/* --- life --- */

enum err calls_start(const struct calls_config *config, struct problem *p, struct calls **ret)
{
    struct calls *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return problem_set(p, ERR_NO_MEMORY, "no memory for calls");
    c->config = *config;
    struct http_caller_config caller = {
        .reach = config->reach,
        .event_fd = config->event_fd,
        .over = shape_result,
    };
    c->caller = http_caller_new(&caller);
    if (c->caller == NULL) {
        free(c);
        return problem_set(p, ERR_NO_MEMORY, "no memory for calls");
    }
    /* An earlier process may have left some: the first round looks, and comes at once. */
    c->left_some = c->freed = true;
    uint64_t one = 1;
    ssize_t n = write(config->event_fd, &one, sizeof(one));
    assert(n == sizeof(one) || errno == EAGAIN);
    *ret = c;
    return ERR_OK;
}

void calls_free(struct calls *c)
{
    if (c == NULL)
        return;
    assert(calls_idle(c));
    http_caller_free(c->caller);
    free(c);
}

void calls_drain(struct calls *c, int64_t mono_ms)
{
    if (!c->draining)
        c->abort_at_ms = mono_ms + CALL_DRAIN_MS;
    c->draining = true;
}

bool calls_idle(const struct calls *c)
{
    return c->count == 0 && !c->taking;
}
