/* Exports spans to an OpenTelemetry collector. */
#include "outbound/span_export.h"

#include "base/limits.h"
#include "base/log.h"
#include "bus/http_caller.h"
#include "domain/call_verdict.h"
#include "outbound/otlp.h"

/* A table is read by its columns. */
/* clang-format off */
#define DROPS(X)                                                                                   \
    X(DROPPED_QUEUE_FULL,  "queue_full")  /* the collector is away or too slow */                  \
    X(DROPPED_REJECTED,    "rejected")    /* the collector refused them */                         \
    X(DROPPED_UNREACHABLE, "unreachable") /* after SPAN_ATTEMPTS_MAX attempts */                   \
    X(DROPPED_STOPPED,     "stopped")     /* the server stopped before they were sent */
/* clang-format on */

enum drop {
#define X(symbol, name) symbol,
    DROPS(X)
#undef X
        DROP_COUNT
};

static const char *const DROP_NAMES[] = {
#define X(symbol, name) name,
    DROPS(X)
#undef X
};

struct batch {
    struct buf spans; /* a list in JSON, without its brackets */
    size_t count;
};

struct span_export {
    struct span_export_config config;
    struct buf url;
    struct http_caller *caller;
    struct batch batches[SPAN_BATCHES_MAX]; /* a ring; the last one is being filled */
    size_t first, count;
    int64_t due_ms; /* when the batch that is being filled is sent at the latest */
    bool sending;   /* the first batch is under way, and does not grow any more */
    int attempts;   /* to send the first batch */
    int64_t retry_at_ms;
    int64_t log_at_ms; /* the next warning, at the earliest */
    bool draining;
    int64_t drain_until_ms;
    bool gave_up; /* the time for draining is over */
};

static int64_t now_ms(const struct span_export *x)
{
    return env_mono_ms(x->config.env);
}

static void count_drop(struct span_export *x, enum drop why, size_t spans)
{
    metric_add(x->config.dropped, str_of(DROP_NAMES[why]), STR_NONE, (double)spans);
}

/* --- filling batches --- */

static struct batch *batch_at(struct span_export *x, size_t i)
{
    return &x->batches[(x->first + i) % SPAN_BATCHES_MAX];
}

static bool is_full(const struct batch *b)
{
    return b->count >= SPANS_PER_BATCH_MAX || b->spans.len >= SPAN_BATCH_BYTES;
}

/* The batch that takes the next span; NULL: there is no room. */
static struct batch *open_batch(struct span_export *x)
{
    size_t closed = x->sending ? 1 : 0;
    if (x->count > closed && !is_full(batch_at(x, x->count - 1)))
        return batch_at(x, x->count - 1);
    if (x->count == SPAN_BATCHES_MAX)
        return NULL;
    x->due_ms = now_ms(x) + SPAN_BATCH_DELAY_MS;
    return batch_at(x, x->count++);
}

static void remove_batch(struct span_export *x)
{
    struct batch *b = batch_at(x, 0);
    buf_release(&b->spans);
    buf_init(&b->spans, SPAN_BATCH_BYTES_MAX);
    b->count = 0;
    x->first = (x->first + 1) % SPAN_BATCHES_MAX;
    x->count--;
    x->attempts = 0;
    x->retry_at_ms = 0;
}

static void drop_batch(struct span_export *x, enum drop why)
{
    count_drop(x, why, batch_at(x, 0)->count);
    remove_batch(x);
}

void span_export_add(struct span_export *x, const struct span *span)
{
    if (x == NULL)
        return;
    struct batch *b = x->gave_up ? NULL : open_batch(x);
    if (b == NULL) {
        count_drop(x, x->gave_up ? DROPPED_STOPPED : DROPPED_QUEUE_FULL, 1);
        return;
    }
    otlp_put_span(&b->spans, span);
    b->count++;
    if (buf_ok(&b->spans))
        return;
    count_drop(x, DROPPED_QUEUE_FULL, b->count); /* out of memory: what was written is broken */
    buf_clear(&b->spans);
    b->count = 0;
}

void span_export_committed(struct span_export *x, const struct effect *first)
{
    if (x == NULL)
        return;
    for (; first != NULL; first = first->next) {
        if (first->kind == EFFECT_SPAN)
            span_export_add(x, first->span);
    }
}

/* --- sending them --- */

static void warn(struct span_export *x, const char *what, const struct http_call *call)
{
    if (now_ms(x) < x->log_at_ms)
        return;
    x->log_at_ms = now_ms(x) + SPAN_LOG_MS;
    LOG(LOG_WARN, what, LOG_N("spans", batch_at(x, 0)->count), LOG_N("status", call->status),
        LOG_Z("error", call->detail));
}

/* Doubles with each attempt, and is at least what the collector asks for, within a bound. */
static int64_t delay_ms(const struct span_export *x, const struct http_call *call)
{
    int64_t delay = (int64_t)SPAN_RETRY_MS << (x->attempts - 1);
    struct str asked = http_call_header(call, STR("retry-after"));
    int64_t least = asked.ptr != NULL ? retry_after_ms(asked, env_now_ms(x->config.env)) : 0;
    return MIN(MAX(delay, least), (int64_t)SPAN_RETRY_MS_MAX);
}

static void not_taken(struct span_export *x, const struct http_call *call)
{
    bool may_pass = call->end == CALL_ANSWERED ? otlp_status_may_pass(call->status)
                                               : call_end_retryable(call->end);
    x->attempts++;
    if (!may_pass) {
        warn(x, "the collector refuses spans; they are dropped", call);
        drop_batch(x, DROPPED_REJECTED);
    } else if (x->draining) {
        drop_batch(x, DROPPED_STOPPED);
    } else if (x->attempts >= SPAN_ATTEMPTS_MAX) {
        warn(x, "the collector cannot be reached; spans are dropped", call);
        drop_batch(x, DROPPED_UNREACHABLE);
    } else {
        x->retry_at_ms = now_ms(x) + delay_ms(x, call);
    }
}

static void taken(struct span_export *x, const struct http_call *call)
{
    size_t count = batch_at(x, 0)->count;
    size_t rejected = (size_t)MIN(otlp_rejected(buf_str(&call->body)), (int64_t)count);
    if (rejected > 0)
        count_drop(x, DROPPED_REJECTED, rejected);
    metric_add(x->config.exported, STR_NONE, STR_NONE, (double)(count - rejected));
    remove_batch(x);
}

void span_export_collect(struct span_export *x)
{
    struct http_call *call = x != NULL ? http_caller_collect(x->caller) : NULL;
    if (call == NULL)
        return;
    assert(call->next == NULL && x->sending); /* one at a time */
    x->sending = false;
    if (call->end == CALL_ANSWERED && call->status >= 200 && call->status < 300)
        taken(x, call);
    else
        not_taken(x, call);
    http_call_free(call);
}

static struct http_call *call_of(const struct span_export *x, struct str spans)
{
    struct buf body;
    buf_init(&body, SPAN_BATCH_BYTES_MAX + 4 * KIB);
    otlp_put_request(&body, spans);
    const struct http_call_header type = {STR("Content-Type"), STR("application/json")};
    struct http_call_request request = {
        .method = STR("POST"),
        .url = buf_str(&x->url),
        .headers = &type,
        .header_count = 1,
        .body = buf_str(&body),
        .timeout_ms = SPAN_TIMEOUT_MS,
    };
    struct http_call *call = buf_ok(&body) ? http_call_new(&request) : NULL;
    buf_release(&body);
    return call;
}

/* Without memory it is tried again at the next tick. */
static void send_first(struct span_export *x)
{
    struct http_call *call = call_of(x, buf_str(&batch_at(x, 0)->spans));
    if (call == NULL)
        return;
    x->sending = http_caller_submit(x->caller, call);
    if (!x->sending)
        http_call_free(call);
}

static bool is_due(struct span_export *x, int64_t mono_ms)
{
    if (x->sending || x->count == 0 || batch_at(x, 0)->count == 0)
        return false;
    if (x->draining)
        return true;
    bool closed = x->count > 1 || is_full(batch_at(x, 0)) || mono_ms >= x->due_ms;
    return closed && mono_ms >= x->retry_at_ms;
}

void span_export_tick(struct span_export *x, int64_t mono_ms)
{
    if (x == NULL)
        return;
    if (x->draining && !x->gave_up && mono_ms >= x->drain_until_ms) {
        x->gave_up = true;
        http_caller_abort(x->caller);
    }
    while (x->gave_up && !x->sending && x->count > 0)
        drop_batch(x, DROPPED_STOPPED);
    if (is_due(x, mono_ms))
        send_first(x);
}

/* --- life --- */

void span_export_drain(struct span_export *x, int64_t mono_ms)
{
    if (x == NULL || x->draining)
        return;
    x->draining = true;
    x->drain_until_ms = mono_ms + SPAN_DRAIN_MS;
}

bool span_export_idle(const struct span_export *x)
{
    return x == NULL || x->count == 0;
}

struct span_export *span_export_new(const struct span_export_config *config)
{
    struct span_export *x = calloc(1, sizeof(*x));
    if (x == NULL)
        return NULL;
    /* The operator has named the collector, so any address will do. */
    struct http_caller_config caller = {.reach = REACH_ALL, .event_fd = config->event_fd};
    x->config = *config;
    buf_init(&x->url, HTTP_LINE_MAX);
    for (size_t i = 0; i < SPAN_BATCHES_MAX; i++)
        buf_init(&x->batches[i].spans, SPAN_BATCH_BYTES_MAX);
    struct str url = config->url;
    while (str_ends_with(url, STR("/")))
        url.len--;
    buf_put(&x->url, url);
    buf_put(&x->url, STR("/v1/traces"));
    x->caller = http_caller_new(&caller);
    if (x->caller == NULL || !buf_ok(&x->url)) {
        span_export_free(x);
        return NULL;
    }
    metric_add(config->exported, STR_NONE, STR_NONE, 0);
    for (enum drop why = 0; why < DROP_COUNT; why++)
        count_drop(x, why, 0);
    return x;
}

void span_export_free(struct span_export *x)
{
    if (x == NULL)
        return;
    if (x->caller != NULL)
        http_caller_free(x->caller);
    for (size_t i = 0; i < SPAN_BATCHES_MAX; i++)
        buf_release(&x->batches[i].spans);
    buf_release(&x->url);
    free(x);
}
