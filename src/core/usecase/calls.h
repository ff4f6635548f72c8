/* Jobs of http steps on their way out and back: the use cases that the engine asks of itself
 * (calls.h). Each hand-out has its job's lease_epoch; a result of an older one changes nothing. */
#ifndef PAWL_CORE_USECASE_CALLS_H
#define PAWL_CORE_USECASE_CALLS_H

#include "base/limits.h"
#include "core/run/http_step.h"
#include "core/txn/op.h"

/* Which hand-out of which job. */
struct call_ticket {
    int64_t tenant;
    int64_t run;
    int64_t ordinal;
    int64_t epoch;
};

/* One job that was taken, with all that its call needs. */
struct call_job {
    struct call_job *next;
    struct call_ticket ticket;
    struct call_frame frame;
    struct str input;
    struct call_result result; /* who makes the call fills it */
    struct op op;              /* likewise, to bring the result back */
    char text[];               /* what `input` and `frame` point to */
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
