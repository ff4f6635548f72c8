/* Making and changing one job of a run inside a transaction: its row (core/txn/job_row.h), its
 * event in the timeline and, when it ends, the progress of its step. The caller then advances the
 * run (run_advance.h). */
#ifndef PAWL_CORE_RUN_JOB_TXN_H
#define PAWL_CORE_RUN_JOB_TXN_H

#include "core/run/run_txn.h"
#include "core/txn/job_row.h"

/* A job of the step with the next free ordinal of its item, pending, not stored. */
struct job job_blank(const struct run_txn *m, size_t step, int64_t ordinal, int64_t item);
/* Stores a new job in the state it has, with its timer and event, and wakes workers that wait. */
MUST_CHECK enum err job_create(struct run_txn *m, struct job *job);
/* Fill in output, error, worker and due_at before; the rest is done here. On success *job is the
 * new row. */
MUST_CHECK enum err job_change(struct run_txn *m, struct job *job, enum job_event on);
/* The same with a further member in the event, `value` as JSON. */
MUST_CHECK enum err job_change_saying(struct run_txn *m, struct job *job, enum job_event on,
                                      const char *name, struct str value);
/* The job has ended, and `job` has its new state: counts it in the progress of its step.
 * ERR_DAMAGED when that expects no such end. */
MUST_CHECK enum err job_ended(struct run_txn *m, const struct job *job);
/* Appends an event about the job to the run's timeline. */
MUST_CHECK enum err job_add_event(struct run_txn *m, enum event_type type, const struct job *job);
/* The same with a further member, as JSON. */
MUST_CHECK enum err job_add_event_with(struct run_txn *m, enum event_type type,
                                       const struct job *job, const char *name, struct str value);

/* How an attempt was lost. */
struct attempt_loss {
    struct str error; /* JSON */
    struct str code;
    bool retryable;
    bool timed_out;         /* its own time was over */
    int64_t delay_ms_least; /* before the next one, whatever the policy says */
};
/* The attempt is lost: the job is retried after a delay, or has failed. */
MUST_CHECK enum err job_attempt_lost(struct run_txn *m, struct job *job,
                                     const struct attempt_loss *loss);
/* The same with an error only. `error` is JSON. */
MUST_CHECK enum err job_attempt_failed(struct run_txn *m, struct job *job, struct str error,
                                       struct str code, bool retryable);
/* Its lease expired without a heartbeat, or its own time is over. */
MUST_CHECK enum err job_attempt_expired(struct run_txn *m, struct job *job);

/* The server stops before the call is answered: it will be made again, under the same key. */
MUST_CHECK enum err job_call_given_back(struct run_txn *m, struct job *job);

#endif
