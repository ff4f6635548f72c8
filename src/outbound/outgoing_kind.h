/* One kind of outgoing work: what outgoing.c needs to know about it. A kind is one row. */
#ifndef PAWL_OUTBOUND_OUTGOING_KIND_H
#define PAWL_OUTBOUND_OUTGOING_KIND_H

#include "bus/http_call.h"
#include "core/usecase/outgoing/outgoing.h"

struct outgoing_kind {
    const char *name;              /* of one piece of work, for the log */
    const struct use_case *take;   /* its input is a struct take_outgoing_input */
    const struct use_case *finish; /* its input is the job with its result */
    size_t taken_per_turn_max;

    /* The call; the caller owns it. NULL: there is none, and the job's result says why. */
    struct http_call *(*shape)(struct outgoing_job *job, int64_t now_ms);
    /* The result of a call that could not be made. */
    void (*refuse)(struct outgoing_job *job, enum call_end end, const char *why);
    /* The result of a call that has ended. On the thread that makes the calls. */
    void (*read_result)(struct outgoing_job *job, const struct http_call *call, int64_t now_ms);
};

#endif
