/* What the input of an http step's job is on the wire, and what came back is as its result. */
#ifndef PAWL_CORE_RUN_HTTP_STEP_H
#define PAWL_CORE_RUN_HTTP_STEP_H

#include "base/env.h"
#include "base/problem.h"
#include "bus/http_call.h"

/* What a call needs besides the request that the step describes. */
struct call_frame {
    struct uuid job_id;     /* the Idempotency-Key, the same at every attempt */
    struct str traceparent; /* ptr NULL: none */
    int64_t timeout_ms;
};

/* `input` is {method, url, headers?, body?} as the step's templates filled it. ERR_FIELD_INVALID
 * when that makes no request. The caller owns *ret. */
MUST_CHECK enum err call_of_input(struct str input, const struct call_frame *frame,
                                  struct problem *p, struct http_call **ret);

struct call_result {
    enum {
        CALL_RESULT_OUTPUT,  /* text is the job's output */
        CALL_RESULT_ERROR,   /* text is its error: {code, message, details?} */
        CALL_RESULT_NOTHING, /* it was aborted: the job is to be done again */
    } kind;
    struct buf text;
    char code[32];
    bool retryable;
    bool timed_out;
    int64_t retry_after_ms; /* what the receiver asked for; 0: nothing */
};

void call_result_init(struct call_result *r);
void call_result_release(struct call_result *r);
/* Of a call that is over. `now_ms` is for dates in it. */
void call_result_take(struct call_result *r, const struct http_call *call, int64_t now_ms);
/* Of one that could not be made. */
void call_result_refuse(struct call_result *r, enum call_end end, const char *why);

#endif
