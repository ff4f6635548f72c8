/* Where runs and the attempts of their jobs are in a trace. A run is a span below the one that its
 * starter names; without one it begins a trace that has the run's id. Every attempt of a job is a
 * span below its run. The ids follow from the ids of run and job: they are the same for the worker,
 * the receiver of a call and an exported span, also after a restart. */
#ifndef PAWL_CORE_RUN_RUN_TRACE_H
#define PAWL_CORE_RUN_RUN_TRACE_H

#include "core/run/run_txn.h"
#include "store/run/jobs.h"

/* Needs only the run's id and traceparent. */
struct trace_span run_span(const struct run *run);
/* The attempt that is under way, or the last one. */
struct trace_span attempt_span(const struct run *run, const struct job *job);

/* These two export spans of sampled traces, if spans are exported at all. */
/* The run has ended: its row has its status and the time. */
MUST_CHECK enum err run_trace_ended(struct run_txn *m);
/* The job has left the state `from` by `on` (JOB_STATE_COUNT, JOB_EVENT_COUNT: it is new): if that
 * has ended an attempt, or the time in which the job slept or waited, that is a span. */
MUST_CHECK enum err run_trace_job_changed(struct run_txn *m, enum job_state from, enum job_event on,
                                          const struct job *job);

#endif
