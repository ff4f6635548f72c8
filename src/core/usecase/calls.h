/* Jobs of http steps: handed out to be called, and their results taken back. The server itself asks
 * for both (outbound/outgoing.h). A hand-out has its job's lease_epoch; the result of an older one
 * changes nothing. */
#ifndef PAWL_CORE_USECASE_CALLS_H
#define PAWL_CORE_USECASE_CALLS_H

#include "base/limits.h"
#include "core/txn/op.h"

/* Which hand-out of which job. */
struct call_ticket {
    int64_t tenant;
    int64_t run;
    int64_t ordinal;
    int64_t epoch;
};

/* The result of a call, for the job. */
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

/* CALL_RESULT_NOTHING. */
void call_result_init(struct call_result *r);
void call_result_release(struct call_result *r);

/* One job that was taken, with all that its call needs. */
struct call_job {
    struct call_job *next;
    struct call_ticket ticket;
    struct uuid id;
    int64_t timeout_ms;
    struct str traceparent;    /* ptr NULL: none */
    struct str input;          /* the request, as the step's templates filled it */
    struct call_result result; /* who makes the call fills it */
    struct op op;              /* likewise, to bring the result back */
    char text[];               /* what `input` and `traceparent` point to */
};

void call_job_free(struct call_job *job);

/* Takes pending jobs, tenants in turn, each with as many as its weight. */
struct take_calls_input {
    size_t room;                          /* at most so many */
    int64_t tenants[CALLS_IN_FLIGHT_MAX]; /* whose calls are under way, one entry each */
    size_t tenant_count;
    struct taken_calls *taken;
};
/* Filled by the run. */
struct taken_calls {
    struct call_job *first; /* the caller's, even if the op came to nothing */
    bool left_some;         /* there may be more when a call under way is over */
    int64_t turn;           /* the tenant that was the last to have its turn; kept by the caller */
};
extern const struct use_case UC_TAKE_CALLS;

/* The input is the struct call_job, with its result. */
extern const struct use_case UC_FINISH_CALL;

#endif
