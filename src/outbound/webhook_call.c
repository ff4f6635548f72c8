/* The call of a webhook delivery. */
#include "outbound/webhook_call.h"

#include "core/usecase/outgoing/deliveries.h"
#include "domain/call_verdict.h"
#include "domain/webhook.h"

enum {
    SIGNATURES_MAX = 128, /* bytes: two of them, with the space between */
    WEBHOOK_HEADERS_MAX = 6,
};

static struct delivery_job *delivery_of(struct outgoing_job *job)
{
    return CONTAINER_OF(job, struct delivery_job, out);
}

static void refuse(struct outgoing_job *job, enum call_end end, const char *why)
{
    struct delivery_result *r = &delivery_of(job)->result;
    r->nothing = false;
    (void)snprintf(r->error, sizeof(r->error), "%s: %s", call_end_code(end), why);
}

/* The response's body is not kept: readers of the delivery log must not learn what the server can
 * reach. */
static void read_result(struct outgoing_job *job, const struct http_call *call, int64_t now_ms)
{
    struct delivery_result *r = &delivery_of(job)->result;
    if (call->end != CALL_ANSWERED) {
        refuse(job, call->end, call->detail);
        r->nothing = call->end == CALL_ABORTED;
        return;
    }
    r->nothing = false;
    r->status = call->status;
    r->retry_after_ms = retry_after_ms(http_call_header(call, STR("retry-after")), now_ms);
    if (r->status < 200 || r->status >= 300)
        (void)snprintf(r->error, sizeof(r->error), "The receiver answered %d", r->status);
}

/* One for each secret: while a secret is rotated there are two. */
static void put_signatures(struct buf *out, const struct delivery_job *d, int64_t now_s)
{
    for (size_t i = 0; i < d->secret_count; i++) {
        struct str secret = {(const char *)d->secrets[i].bytes, WEBHOOK_SECRET_LEN};
        if (i > 0)
            buf_put_char(out, ' ');
        webhook_put_signature(out, secret, d->event_id, now_s, d->body);
    }
}

/* As https://www.standardwebhooks.com has it. */
static struct http_call *shape(struct outgoing_job *job, int64_t now_ms)
{
    const struct delivery_job *d = delivery_of(job);
    char time[24];
    struct buf signatures;
    int64_t now_s = now_ms / 1000;
    (void)snprintf(time, sizeof(time), "%lld", (long long)now_s);
    buf_init(&signatures, SIGNATURES_MAX);
    put_signatures(&signatures, d, now_s);
    struct http_call_header headers[WEBHOOK_HEADERS_MAX] = {
        {STR("Content-Type"), STR("application/cloudevents+json; charset=utf-8")},
        {STR("webhook-id"), d->event_id},
        {STR("webhook-timestamp"), str_of(time)},
        {STR("webhook-signature"), buf_str(&signatures)},
    };
    size_t header_count = 4;
    char traceparent[TRACEPARENT_LEN + 1];
    if (d->span.id != 0) {
        trace_write(&d->span, traceparent);
        headers[header_count++] =
            (struct http_call_header){STR("traceparent"), str_of(traceparent)};
    }
    if (d->tracestate != NULL)
        headers[header_count++] =
            (struct http_call_header){STR("tracestate"), str_of(d->tracestate)};
    struct http_call_request request = {
        .method = STR("POST"),
        .url = d->url,
        .headers = headers,
        .header_count = header_count,
        .body = d->body,
        .timeout_ms = WEBHOOK_TIMEOUT_MS,
        .redirects_max = 0, /* a redirect would send the event to somewhere nobody chose */
    };
    struct http_call *call = buf_ok(&signatures) ? http_call_new(&request) : NULL;
    buf_release(&signatures);
    if (call == NULL)
        refuse(job, CALL_FAILED, "The server is out of memory");
    return call;
}

const struct outgoing_kind WEBHOOK_DELIVERIES = {
    .name = "webhook delivery",
    .take = &UC_TAKE_DELIVERIES,
    .finish = &UC_FINISH_DELIVERY,
    .taken_per_turn_max = DELIVERIES_TAKEN_PER_TURN_MAX,
    .shape = shape,
    .refuse = refuse,
    .read_result = read_result,
};
