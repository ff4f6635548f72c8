/* Where runs and the attempts of their jobs are in a trace. */
#include "core/run/run_trace.h"

struct trace_span run_span(const struct run *run)
{
    return trace_span_below(run->traceparent, run->id, trace_span_id(run->id, 0));
}

/* A released attempt is not counted, but its worker has seen the span: the lease's number tells
 * them apart. */
struct trace_span attempt_span(const struct run *run, const struct job *job)
{
    struct trace_span parent = run_span(run);
    return trace_span_child(&parent, trace_span_id(job->id, job->lease_epoch));
}
