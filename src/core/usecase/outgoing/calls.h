/* The calls of http steps: use cases that take pending jobs and bring results back (outgoing.h).
 * The job's lease_epoch numbers its hand-outs. */
#ifndef PAWL_CORE_USECASE_OUTGOING_CALLS_H
#define PAWL_CORE_USECASE_OUTGOING_CALLS_H

#include "base/trace/trace.h"
#include "core/usecase/outgoing/outgoing.h"

/* The result of a call, for the job. */
struct call_result {
    enum {
        CALL_RESULT_OUTPUT,  /* text is the job's output */
        CALL_RESULT_ERROR,   /* text is its error: {code, message, details?} */
        CALL_RESULT_NOTHING, /* no call was made, or it was aborted: the job is pending again */
    } kind;
    struct buf text;
    char code[32];
    bool retryable;
    bool timed_out;
    int64_t retry_after_ms; /* what the receiver asked for; 0: nothing */
};

/* CALL_RESULT_NOTHING. */
void call_result_init(struct call_result *r);
void call_result_release(struct call_result *r);

/* One job that was taken, with all that its call needs. */
struct call_job {
    struct outgoing_job out;
    int64_t ordinal; /* with the place's run and the epoch: which hand-out of which job */
    int64_t epoch;
    struct uuid id;
    int64_t timeout_ms;
    char traceparent[TRACEPARENT_LEN + 1];
    bool trace_is_given;       /* by the run's starter: the step cannot set another */
    struct str tracestate;     /* ptr NULL: none */
    struct str input;          /* the request, as the step's templates filled it */
    struct call_result result; /* filled by the maker of the call */
    char text[];               /* what `input` and `tracestate` point to */
};

/* Takes pending jobs, tenants in turn, each with as many as its weight. The input is a struct
 * take_outgoing_input. */
extern const struct use_case UC_TAKE_CALLS;
/* The input is the struct call_job, with its result. */
extern const struct use_case UC_FINISH_CALL;

#endif
