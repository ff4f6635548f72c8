/* The life of a job, one execution of one step, and the one door through which its state changes.
 *
 *              CLAIM              COMPLETE
 *   pending ──────────▶ running ───────────▶ succeeded
 *      ▲                 │   │      FAIL
 *      └─────────────────┘   └────────────▶ failed
 *            EXPIRE
 *   scheduled ── FIRE ──▶ succeeded            any open state ── CANCEL ──▶ cancelled
 *
 * pending    lies in its queue; any worker may claim it.
 * running    one worker has its lease: worker, due_at (the lease's end) and lease_epoch are set.
 * scheduled  waits for due_at, with a timer of the same time.
 * approval, dispatched, denied, timed_out and skipped are reached by edges of later versions.
 * Each CLAIM raises lease_epoch; a worker that speaks for an older epoch changes nothing. */
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
    X(JOB_SCHEDULED, JOB_ON_FIRE,     JOB_SUCCEEDED)                                               \
    X(JOB_PENDING,   JOB_ON_CANCEL,   JOB_CANCELLED)                                               \
    X(JOB_SCHEDULED, JOB_ON_CANCEL,   JOB_CANCELLED)                                               \
    X(JOB_RUNNING,   JOB_ON_CANCEL,   JOB_CANCELLED)
/* clang-format on */

/* Pure. ERR_CONCURRENCY when the state has no such edge; *ret is then untouched. */
MUST_CHECK enum err job_decide(enum job_state from, enum job_event on, enum job_state *ret);

const char *job_state_name(enum job_state state);
/* JOB_STATE_COUNT when there is no such state. */
enum job_state job_state_of(struct str name);
bool job_is_over(enum job_state state);

#endif
