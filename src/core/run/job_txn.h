/* Making and changing one job of a run inside a transaction: its row (job_row.h) and its line in
 * the timeline. What that means for the run is run_txn's business. */
#ifndef PAWL_CORE_RUN_JOB_TXN_H
#define PAWL_CORE_RUN_JOB_TXN_H

#include "core/run/run_txn.h"
#include "core/txn/job_row.h"

/* Timers of a run that belong to no job. */
enum {
    TIMER_PARENT_OVER = -4, /* the job that it is a part of has ended: it is cancelled */
    TIMER_GO_ON = -1,       /* there is more to do than one turn may take */
    TIMER_RUN = 0,          /* its deadline, or its start */
};

/* A job of the step with the next free ordinal of its item, pending, not stored. */
struct job job_blank(const struct run_txn *m, size_t step, int64_t ordinal, int64_t item);
/* Stores a new job in the state it has, arms its timer, tells of it and wakes who waits for it. */
MUST_CHECK enum err job_create(struct run_txn *m, struct job *job);
/* Fill in output, error, worker and due_at before; the rest is done here. On success *job is the
 * new row. */
MUST_CHECK enum err job_change(struct run_txn *m, struct job *job, enum job_event on);
/* One line of the run's story about the job. */
MUST_CHECK enum err job_add_event(struct run_txn *m, enum event_type type, const struct job *job);

/* How an attempt was lost. */
struct attempt_loss {
    struct str error; /* JSON */
    struct str code;
    bool retryable;
    bool timed_out;         /* its own time was over */
    int64_t delay_ms_least; /* before the next one, whatever the policy says */
};
/* The attempt is lost: again after a delay, or failed for good. */
MUST_CHECK enum err job_attempt_lost(struct run_txn *m, struct job *job,
                                     const struct attempt_loss *loss);
/* Likewise, without more to say. `error` is JSON. */
MUST_CHECK enum err job_attempt_failed(struct run_txn *m, struct job *job, struct str error,
                                       struct str code, bool retryable);
/* Nothing was heard of it in time. */
MUST_CHECK enum err job_attempt_expired(struct run_txn *m, struct job *job);

/* The server stops and does not wait for the call: another one will make it, with the same key. */
MUST_CHECK enum err job_call_given_back(struct run_txn *m, struct job *job);

/* A timer of the run; moves up when the writer wakes. */
MUST_CHECK enum err run_arm(struct run_txn *m, int64_t ordinal, int64_t due_at);
MUST_CHECK enum err run_disarm(struct run_txn *m, int64_t ordinal, int64_t due_at);

/* {"code":…,"message":…} in the transaction's arena; ptr NULL when memory ran out. */
struct str error_json(struct tx *tx, const char *code, struct str message);

#endif
