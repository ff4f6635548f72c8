/* Deliveries of webhooks: use cases that take what is due and bring results back (outgoing.h). A
 * delivery's count of attempts numbers its hand-outs. */
#ifndef PAWL_CORE_USECASE_OUTGOING_DELIVERIES_H
#define PAWL_CORE_USECASE_OUTGOING_DELIVERIES_H

#include "base/trace/trace.h"
#include "core/usecase/outgoing/outgoing.h"
#include "store/outbox/webhooks.h"

/* The result of an attempt. */
struct delivery_result {
    bool nothing;           /* no call was made, or it was aborted: the delivery is pending again */
    int status;             /* 0: there was no response */
    int64_t retry_after_ms; /* -1: the receiver did not ask for a delay */
    char error[384];        /* for people; "" after a success */
};

/* One delivery that was taken, with all that its call needs. */
struct delivery_job {
    struct outgoing_job out;
    struct uuid id;
    int64_t attempt;
    struct str url;
    struct str event_id;
    struct str body;
    struct uuid run;        /* that the event belongs to */
    struct trace_span span; /* this attempt's; id 0: the event belongs to no run */
    char *tracestate;       /* NULL: none; freed with the job */
    int64_t begun_at;
    struct webhook_secret secrets[2];
    size_t secret_count;
    struct delivery_result result; /* filled by the maker of the call */
    char text[];                   /* what url, event_id and body point to */
};

/* Takes what is due, webhooks in turn. The input is a struct take_outgoing_input. */
extern const struct use_case UC_TAKE_DELIVERIES;
/* The input is the struct delivery_job, with its result. op->answer.outcome says, for the metrics,
 * what became of the delivery; NULL: the attempt changed nothing. */
extern const struct use_case UC_FINISH_DELIVERY;

struct tx;
/* Nothing more is sent until somebody enables it. Audited. */
MUST_CHECK enum err webhook_disable(struct tx *tx, struct webhook *w, const char *reason);

#endif
