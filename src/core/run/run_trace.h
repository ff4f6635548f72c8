/* Where runs and the attempts of their jobs are in a trace. A run is a span below the one that its
 * starter names; without one it begins a trace that has the run's id. Every attempt of a job is a
 * span below its run. The ids follow from the ids of run and job: they are the same for the worker,
 * the receiver of a call and an exported span, also after a restart. */
#ifndef PAWL_CORE_RUN_RUN_TRACE_H
#define PAWL_CORE_RUN_RUN_TRACE_H

#include "base/trace.h"
#include "store/run/jobs.h"
#include "store/run/runs.h"

/* Needs only the run's id and traceparent. */
struct trace_span run_span(const struct run *run);
/* The attempt that is under way, or the last one. */
struct trace_span attempt_span(const struct run *run, const struct job *job);

#endif
