/* Sends deliveries to the receivers of webhooks. */
#include "outbound/webhooks.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "bus/http_caller.h"
#include "core/usecase/deliveries.h"
#include "domain/call_verdict.h"
#include "domain/webhook.h"

enum { RETRY_MS = 1000, SIGNATURES_MAX = 128 };

struct webhooks {
    struct webhooks_config config;
    struct http_caller *caller; /* of its own: slow receivers hold up no http steps */
    struct delivery_job *under_way[CALLS_IN_FLIGHT_MAX]; /* from taken to stored */
    size_t count;

    struct op take;
    struct take_deliveries_input take_input;
    struct taken_deliveries taken;
    bool taking;
    bool taken_before;  /* since the start */
    bool left_some;     /* so the last one said */
    bool freed;         /* there has been room since it was asked */
    int64_t take_at_ms; /* not before (monotonic) */
    int64_t due_at;     /* by the wall clock; -1: nothing waits for a time */

    struct delivery_job *unsaved; /* results that could not be stored, linked by `next` */
    int64_t save_at_ms;

    bool draining;
    bool aborted;
    int64_t abort_at_ms;
};

/* --- the way back --- */

static void remove_job(struct webhooks *w, struct delivery_job *job)
{
    size_t i = 0;
    while (w->under_way[i] != job)
        i++;
    assert(i < w->count);
    w->under_way[i] = w->under_way[--w->count];
    w->under_way[w->count] = NULL;
    w->freed = true;
    delivery_job_free(job);
}

static bool may_pass(enum err e)
{
    return e == ERR_STORE_BUSY || e == ERR_STORE_FULL || e == ERR_NO_MEMORY;
}

static void saved(struct op *op)
{
    struct delivery_job *job = CONTAINER_OF(op, struct delivery_job, op);
    struct webhooks *w = op->owner;
    if (op->err != ERR_OK && may_pass(op->err) && !w->draining) {
        job->next = w->unsaved;
        w->unsaved = job;
        w->save_at_ms = env_mono_ms(w->config.env) + RETRY_MS;
        return;
    }
    if (op->err != ERR_OK)
        LOG(LOG_ERROR, "the result of a delivery is lost; it is sent again",
            LOG_Z("why", op->problem.detail));
    else if (job->outcome != NULL)
        metric_add(w->config.attempts, str_of(job->outcome), STR_NONE, 1);
    remove_job(w, job);
}

static void save(struct webhooks *w, struct delivery_job *job)
{
    job->next = NULL;
    job->op.input = job;
    job->op.owner = w;
    job->op.done = saved;
    job->op.bytes = sizeof(*job);
    w->config.submit(w->config.ctx, &job->op);
}

static void save_again(struct webhooks *w)
{
    struct delivery_job *job = w->unsaved;
    w->unsaved = NULL;
    while (job != NULL) {
        struct delivery_job *next = job->next;
        save(w, job);
        job = next;
    }
}

static void refused(struct delivery_result *r, enum call_end end, const char *why)
{
    (void)snprintf(r->error, sizeof(r->error), "%s: %s", call_end_code(end), why);
}

/* The receiver's words are left out: who may see the log may not see what the server can reach. */
static void read_answer(struct delivery_result *r, const struct http_call *call, int64_t now_ms)
{
    r->nothing = call->end == CALL_ABORTED;
    if (call->end != CALL_ANSWERED) {
        refused(r, call->end, call->detail);
        return;
    }
    r->status = call->status;
    r->retry_after_ms = retry_after_ms(http_call_header(call, STR("retry-after")), now_ms);
    if (r->status < 200 || r->status >= 300)
        (void)snprintf(r->error, sizeof(r->error), "the receiver answered %d", r->status);
}

void webhooks_collect(struct webhooks *w)
{
    struct http_call *call = http_caller_collect(w->caller);
    while (call != NULL) {
        struct http_call *next = call->next;
        struct delivery_job *job = call->owner;
        read_answer(&job->result, call, env_now_ms(w->config.env));
        http_call_free(call);
        save(w, job);
        call = next;
    }
}

/* --- the way out --- */

/* As https://www.standardwebhooks.com says. NULL when memory ran out. */
static struct http_call *call_of(const struct delivery_job *job, int64_t now_ms)
{
    char time[24];
    struct buf signatures;
    int64_t now_s = now_ms / 1000;
    (void)snprintf(time, sizeof(time), "%lld", (long long)now_s);
    buf_init(&signatures, SIGNATURES_MAX);
    for (size_t i = 0; i < job->secret_count; i++) {
        struct str secret = {(const char *)job->secrets[i].bytes, WEBHOOK_SECRET_LEN};
        if (i > 0)
            buf_put_char(&signatures, ' ');
        webhook_put_signature(&signatures, secret, job->event_id, now_s, job->body);
    }
    struct http_header headers[] = {
        {STR("Content-Type"), STR("application/cloudevents+json; charset=utf-8")},
        {STR("webhook-id"), job->event_id},
        {STR("webhook-timestamp"), str_of(time)},
        {STR("webhook-signature"), buf_str(&signatures)},
    };
    struct http_request request = {
        .method = STR("POST"),
        .url = job->url,
        .headers = headers,
        .header_count = ARRAY_LEN(headers),
        .body = job->body,
        .timeout_ms = WEBHOOK_TIMEOUT_MS,
        .redirects_max = 0, /* a redirect would take the event to where nobody asked for it */
    };
    struct http_call *call = buf_ok(&signatures) ? http_call_new(&request) : NULL;
    buf_release(&signatures);
    return call;
}

static void begin(struct webhooks *w, struct delivery_job *job)
{
    assert(w->count < CALLS_IN_FLIGHT_MAX);
    w->under_way[w->count++] = job;
    struct http_call *call = w->draining ? NULL : call_of(job, env_now_ms(w->config.env));
    if (call != NULL) {
        call->owner = job;
        if (http_caller_submit(w->caller, call))
            return;
        http_call_free(call);
    }
    job->result.nothing = w->draining;
    refused(&job->result, CALL_FAILED, "the server is short of memory");
    save(w, job);
}

static void taken(struct op *op)
{
    struct webhooks *w = op->owner;
    struct delivery_job *job = w->taken.first;
    bool ok = op->err == ERR_OK;
    w->taken.first = NULL;
    w->taking = false;
    w->taken_before |= ok;
    w->left_some = w->taken.left_some || w->taken.unfinished || !ok;
    w->freed |= w->taken.unfinished || !ok;
    if (ok) {
        w->due_at = w->taken.next_at;
    } else {
        LOG(LOG_WARN, "deliveries could not be taken", LOG_Z("why", op->problem.detail));
        w->take_at_ms = env_mono_ms(w->config.env) + RETRY_MS;
    }
    op_release(op);
    size_t count = 0;
    for (; job != NULL; count++) {
        struct delivery_job *next = job->next;
        job->next = NULL;
        if (ok)
            begin(w, job);
        else
            delivery_job_free(job);
        job = next;
    }
    w->freed |= count == DELIVERIES_TAKEN_PER_TURN_MAX; /* it was the turn that was full */
}

static void take(struct webhooks *w)
{
    w->freed = false;
    w->taking = true;
    w->take_input.room = MIN(CALLS_IN_FLIGHT_MAX - w->count, (size_t)DELIVERIES_TAKEN_PER_TURN_MAX);
    w->take_input.under_way_count = w->count;
    for (size_t i = 0; i < w->count; i++)
        w->take_input.under_way[i] = w->under_way[i]->place;
    w->take_input.first = !w->taken_before;
    w->take_input.taken = &w->taken;
    op_init(&w->take, &UC_TAKE_DELIVERIES);
    w->take.input = &w->take_input;
    w->take.owner = w;
    w->take.done = taken;
    w->config.submit(w->config.ctx, &w->take);
}

void webhooks_tick(struct webhooks *w, int64_t mono_ms)
{
    if (w->unsaved != NULL && (mono_ms >= w->save_at_ms || w->draining))
        save_again(w);
    if (w->draining && !w->aborted && mono_ms >= w->abort_at_ms) {
        w->aborted = true;
        http_caller_abort(w->caller);
    }
    if (w->draining || w->taking || mono_ms < w->take_at_ms || w->count == CALLS_IN_FLIGHT_MAX)
        return;
    bool due = w->due_at >= 0 && w->due_at <= env_now_ms(w->config.env);
    if (atomic_exchange(w->config.has_deliveries, false) || (w->left_some && w->freed) || due)
        take(w);
}

/* --- life --- */

enum err webhooks_start(const struct webhooks_config *config, struct problem *p,
                        struct webhooks **ret)
{
    struct webhooks *w = calloc(1, sizeof(*w));
    struct http_caller_config caller = {
        .reach = config->reach,
        .event_fd = config->event_fd,
    };
    if (w != NULL)
        w->caller = http_caller_new(&caller);
    if (w == NULL || w->caller == NULL) {
        free(w);
        return problem_set(p, ERR_NO_MEMORY, "no memory for webhooks");
    }
    w->config = *config;
    w->due_at = 0; /* an earlier process may have left some */
    *ret = w;
    return ERR_OK;
}

void webhooks_free(struct webhooks *w)
{
    if (w == NULL)
        return;
    assert(webhooks_idle(w));
    http_caller_free(w->caller);
    free(w);
}

void webhooks_drain(struct webhooks *w, int64_t mono_ms)
{
    if (!w->draining)
        w->abort_at_ms = mono_ms + CALL_DRAIN_MS;
    w->draining = true;
}

bool webhooks_idle(const struct webhooks *w)
{
    return w->count == 0 && !w->taking;
}
