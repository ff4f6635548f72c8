/* The life of a job, one execution of one step, and the one door through which its state changes.
 *
 *              CLAIM              COMPLETE
 *   pending ──────────▶ running ───────────▶ succeeded
 *    ▲  ▲ │              │ │ │  FAIL, TIME_OUT
 *    │  │ └──── HOLD ──┐ │ │ └─────────────▶ failed, timed_out
 *    │  └─ EXPIRE, ────┼─┘ │
 *    │     RELEASE     │   │ RETRY
 *    │  WAKE           ▼   ▼
 *    └───────────── scheduled ── FIRE ──▶ succeeded      any open state ── CANCEL ──▶ cancelled
 *   dispatched is running, but with the server itself: an HTTP call or a child run.
 *
 *            SUSPEND               RESUME
 *   running ─────────▶ suspended ────────▶ pending
 *
 * pending    lies in its queue; any worker may claim it.
 * running    one worker has its lease: worker, due_at (the lease's end) and lease_epoch are set.
 * scheduled  waits for due_at, with a timer of the same time; without one for a signal, or for its
 *            run to be resumed.
 * suspended  its worker gave the lease up until a time (due_at), a signal or a decision has come;
 *            what it waits for is in its row of `suspensions`.
 * dispatched the server works on it; due_at is the end of its time.
 * A job that did not succeed is REVIVEd, back to pending, when its run is made to try again.
 *
 *              APPROVE, a task
 *   approval ──────────────────▶ pending
 *    │  │ └─── COMPLETE, an approval step ──▶ succeeded
 *    │  └───── DENY ──▶ denied
 *    └──────── FAIL, TIME_OUT ──▶ failed, timed_out
 *
 * approval   waits for a person (domain/approval.h), and has never been in a queue; due_at is the
 *            next reminder, the escalation or the end of its time.
 * denied     a person said no, or nobody yes in time. It stays so: only a new run asks again.
 * skipped is reached by edges of later versions.
 * Each CLAIM and each DISPATCH raises lease_epoch; who speaks for an older epoch changes nothing.
 */
#ifndef PAWL_DOMAIN_JOB_H
#define PAWL_DOMAIN_JOB_H

#include "base/err.h"
#include "base/str.h"

/* A table is read by its columns. */
/* clang-format off */
#define JOB_STATES(X)                                                                              \
    /* symbol         name          terminal */                                                    \
    X(JOB_APPROVAL,   "approval",   false)                                                         \
    X(JOB_PENDING,    "pending",    false)                                                         \
    X(JOB_SCHEDULED,  "scheduled",  false)                                                         \
    X(JOB_SUSPENDED,  "suspended",  false)                                                         \
    X(JOB_DISPATCHED, "dispatched", false)                                                         \
    X(JOB_RUNNING,    "running",    false)                                                         \
    X(JOB_SUCCEEDED,  "succeeded",  true)                                                          \
    X(JOB_FAILED,     "failed",     true)                                                          \
    X(JOB_DENIED,     "denied",     true)                                                          \
    X(JOB_CANCELLED,  "cancelled",  true)                                                          \
    X(JOB_TIMED_OUT,  "timed_out",  true)                                                          \
    X(JOB_SKIPPED,    "skipped",    true)
/* clang-format on */

enum job_state {
#define X(symbol, name, terminal) symbol,
    JOB_STATES(X)
#undef X
        JOB_STATE_COUNT
};

enum job_event {
    JOB_ON_CLAIM,
    JOB_ON_EXPIRE,
    JOB_ON_COMPLETE,
    JOB_ON_FAIL,
    JOB_ON_FIRE,
    JOB_ON_CANCEL,
    JOB_ON_DISPATCH,
    JOB_ON_RETRY,
    JOB_ON_WAKE,
    JOB_ON_RELEASE,
    JOB_ON_TIME_OUT,
    JOB_ON_HOLD,
    JOB_ON_REVIVE,
    JOB_ON_APPROVE,
    JOB_ON_DENY,
    JOB_ON_SUSPEND,
    JOB_ON_RESUME,
    JOB_EVENT_COUNT
};

/* A table is read by its columns. */
/* clang-format off */
#define JOB_EDGES(X)                                                                               \
    /* from           on               to */                                                       \
    X(JOB_PENDING,   JOB_ON_CLAIM,    JOB_RUNNING)                                                 \
    X(JOB_RUNNING,   JOB_ON_EXPIRE,   JOB_PENDING)                                                 \
    X(JOB_RUNNING,   JOB_ON_COMPLETE, JOB_SUCCEEDED)                                               \
    X(JOB_RUNNING,   JOB_ON_FAIL,     JOB_FAILED)                                                  \
    X(JOB_RUNNING,   JOB_ON_RETRY,    JOB_SCHEDULED)                                               \
    X(JOB_RUNNING,   JOB_ON_RELEASE,  JOB_PENDING)                                                 \
    X(JOB_RUNNING,   JOB_ON_TIME_OUT, JOB_TIMED_OUT)                                               \
    X(JOB_RUNNING,   JOB_ON_CANCEL,   JOB_CANCELLED)                                               \
    X(JOB_RUNNING,   JOB_ON_SUSPEND,  JOB_SUSPENDED)                                               \
    X(JOB_SUSPENDED, JOB_ON_RESUME,   JOB_PENDING)                                                 \
    X(JOB_SUSPENDED, JOB_ON_CANCEL,   JOB_CANCELLED)                                               \
    X(JOB_PENDING,   JOB_ON_DISPATCH, JOB_DISPATCHED)                                              \
    X(JOB_PENDING,   JOB_ON_HOLD,     JOB_SCHEDULED)                                               \
    X(JOB_PENDING,   JOB_ON_CANCEL,   JOB_CANCELLED)                                               \
    X(JOB_PENDING,   JOB_ON_FAIL,     JOB_FAILED)                                                  \
    X(JOB_DISPATCHED, JOB_ON_COMPLETE, JOB_SUCCEEDED)                                              \
    X(JOB_DISPATCHED, JOB_ON_FAIL,    JOB_FAILED)                                                  \
    X(JOB_DISPATCHED, JOB_ON_RETRY,   JOB_SCHEDULED)                                               \
    X(JOB_DISPATCHED, JOB_ON_EXPIRE,  JOB_PENDING)                                                 \
    X(JOB_DISPATCHED, JOB_ON_TIME_OUT, JOB_TIMED_OUT)                                              \
    X(JOB_DISPATCHED, JOB_ON_CANCEL,  JOB_CANCELLED)                                               \
    X(JOB_SCHEDULED, JOB_ON_FIRE,     JOB_SUCCEEDED)                                               \
    X(JOB_SCHEDULED, JOB_ON_WAKE,     JOB_PENDING)                                                 \
    X(JOB_SCHEDULED, JOB_ON_TIME_OUT, JOB_TIMED_OUT)                                               \
    X(JOB_SCHEDULED, JOB_ON_COMPLETE, JOB_SUCCEEDED)                                               \
    X(JOB_SCHEDULED, JOB_ON_FAIL,     JOB_FAILED)                                                  \
    X(JOB_SCHEDULED, JOB_ON_CANCEL,   JOB_CANCELLED)                                               \
    X(JOB_APPROVAL,  JOB_ON_APPROVE,  JOB_PENDING)                                                 \
    X(JOB_APPROVAL,  JOB_ON_COMPLETE, JOB_SUCCEEDED)                                               \
    X(JOB_APPROVAL,  JOB_ON_DENY,     JOB_DENIED)                                                  \
    X(JOB_APPROVAL,  JOB_ON_FAIL,     JOB_FAILED)                                                  \
    X(JOB_APPROVAL,  JOB_ON_TIME_OUT, JOB_TIMED_OUT)                                               \
    X(JOB_APPROVAL,  JOB_ON_CANCEL,   JOB_CANCELLED)                                               \
    X(JOB_FAILED,    JOB_ON_REVIVE,   JOB_PENDING)                                                 \
    X(JOB_TIMED_OUT, JOB_ON_REVIVE,   JOB_PENDING)                                                 \
    X(JOB_CANCELLED, JOB_ON_REVIVE,   JOB_PENDING)
/* clang-format on */

/* Pure. ERR_STATUS_CONFLICT when the state has no such edge; *ret is then untouched. */
MUST_CHECK enum err job_decide(enum job_state from, enum job_event on, enum job_state *ret);

const char *job_state_name(enum job_state state);
/* JOB_STATE_COUNT when there is no such state. */
enum job_state job_state_of(struct str name);
bool job_has_ended(enum job_state state);

#endif
