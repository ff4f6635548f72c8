/* The call of an http step: the job's input as a request, and the response as the job's result. */
#ifndef PAWL_OUTBOUND_HTTP_STEP_H
#define PAWL_OUTBOUND_HTTP_STEP_H

#include "core/usecase/outgoing/calls.h"
#include "outbound/outgoing_kind.h"

extern const struct outgoing_kind HTTP_STEP_CALLS;

/* The job's input is {method, url, headers?, body?}, as the step's templates filled it.
 * ERR_FIELD_INVALID when that is not a request. The caller owns *ret. */
MUST_CHECK enum err http_step_shape(const struct call_job *job, struct problem *p,
                                    struct http_call **ret);

/* The result of a call that has ended. `now_ms` is for dates in the response. */
void http_step_take_result(struct call_result *r, const struct http_call *call, int64_t now_ms);
/* The result of a call that could not be made. */
void http_step_refuse(struct call_result *r, enum call_end end, const char *why);

#endif
