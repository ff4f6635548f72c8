/* The life of a run: its statuses, and the one door through which a status changes.
 *
 *   at a limit ┌────────┐ ADMIT
 *   ──────────▶│ queued ├────────┐                         PAUSE
 *              └────────┘        ▼                  ┌──────────────▶ paused
 *                           ┌─────────┐ START  ┌────┴────┐ RESUME     │
 *   admitted ──────────────▶│ pending ├───────▶│ running │◀───────────┘
 *                           └─────────┘        │         │  WAIT   ┌─────────┐
 *                                ▲             │         │────────▶│ waiting │
 *                                │             │         │◀────────┤         │
 *                                │             └──┬───┬──┘  WAKE   └─────────┘
 *                                │        SUCCEED │   │ FAIL, TIME_OUT, DENY
 *                                │ RETRY          ▼   ▼
 *                                └────── failed, timed_out    succeeded, denied
 *   CANCEL leads from every status that is not over to cancelled, GIVE_UP to failed: the run cannot
 *   go on, whatever its steps say, and nothing is compensated.
 *
 * queued   waits for a slot under every limit that applies to it; it stands in one line of the
 *          queue, has no job and counts as queued with its tenant and scopes. Or it waits for its
 *          start_at and stands in no line yet; if the queue is full by then, it fails (FAIL).
 * pending  has its slots, no step has begun, or none since it was made to try again.
 * running  at least one step can be or is being worked on.
 * waiting  every open step waits for a time or a message to come.
 * paused   keeps its slots; no step begins and no job is handed out, but results are taken.
 * denied   a person said no to a step of it, and no on_error deals with that. Not retried: a
 *          rerun asks again.
 * A run that is over holds no slot and has finished_at set. */
#ifndef PAWL_DOMAIN_RUN_H
#define PAWL_DOMAIN_RUN_H

#include "base/err.h"
#include "base/str.h"

/* A table is read by its columns. */
/* clang-format off */
#define RUN_STATUSES(X)                                                                            \
    /* symbol        name         holds a slot  terminal */                                        \
    X(RUN_QUEUED,    "queued",    false,        false)                                             \
    X(RUN_PENDING,   "pending",   true,         false)                                             \
    X(RUN_RUNNING,   "running",   true,         false)                                             \
    X(RUN_WAITING,   "waiting",   true,         false)                                             \
    X(RUN_PAUSED,    "paused",    true,         false)                                             \
    X(RUN_SUCCEEDED, "succeeded", false,        true)                                              \
    X(RUN_FAILED,    "failed",    false,        true)                                              \
    X(RUN_DENIED,    "denied",    false,        true)                                              \
    X(RUN_CANCELLED, "cancelled", false,        true)                                              \
    X(RUN_TIMED_OUT, "timed_out", false,        true)
/* clang-format on */

enum run_status {
#define X(symbol, name, slot, terminal) symbol,
    RUN_STATUSES(X)
#undef X
        RUN_STATUS_COUNT
};

enum run_event {
    RUN_ON_ADMIT,
    RUN_ON_START,
    RUN_ON_WAIT,
    RUN_ON_WAKE,
    RUN_ON_SUCCEED,
    RUN_ON_FAIL,
    RUN_ON_CANCEL,
    RUN_ON_TIME_OUT,
    RUN_ON_PAUSE,
    RUN_ON_RESUME,
    RUN_ON_RETRY,
    RUN_ON_DENY,
    RUN_ON_GIVE_UP,
    RUN_EVENT_COUNT
};

/* What must happen in the same transaction as the change. */
enum {
    FX_NONE = 0,
    FX_SLOT_FREE = 1,     /* its slots go back: the tenant's and those of its scopes */
    FX_JOBS_CANCEL = 2,   /* open jobs and their timers end */
    FX_FINISH = 4,        /* finished_at is set, waiters are notified */
    FX_SLOT_TAKE = 8,     /* it counts as active from now on */
    FX_QUEUE_LEAVE = 16,  /* and no longer as queued */
    FX_JOBS_HOLD = 32,    /* jobs that wait for a worker are kept back */
    FX_JOBS_RELEASE = 64, /* and handed out again */
};

/* A table is read by its columns. */
/* clang-format off */
#define RUN_EDGES(X)                                                                               \
    /* from         on              to             effects */                                      \
    X(RUN_QUEUED,  RUN_ON_ADMIT,   RUN_PENDING,   FX_QUEUE_LEAVE | FX_SLOT_TAKE)                   \
    X(RUN_QUEUED,  RUN_ON_CANCEL,  RUN_CANCELLED, FX_QUEUE_LEAVE | FX_FINISH)                      \
    X(RUN_QUEUED,  RUN_ON_FAIL,    RUN_FAILED,    FX_QUEUE_LEAVE | FX_FINISH)                      \
    X(RUN_PENDING, RUN_ON_START,   RUN_RUNNING,   FX_NONE)                                         \
    X(RUN_RUNNING, RUN_ON_WAIT,    RUN_WAITING,   FX_NONE)                                         \
    X(RUN_WAITING, RUN_ON_WAKE,    RUN_RUNNING,   FX_NONE)                                         \
    X(RUN_RUNNING, RUN_ON_SUCCEED, RUN_SUCCEEDED, FX_SLOT_FREE | FX_FINISH)                        \
    X(RUN_RUNNING, RUN_ON_FAIL,    RUN_FAILED,    FX_SLOT_FREE | FX_FINISH)                        \
    X(RUN_RUNNING, RUN_ON_TIME_OUT, RUN_TIMED_OUT, FX_SLOT_FREE | FX_FINISH)                       \
    X(RUN_RUNNING, RUN_ON_DENY,    RUN_DENIED,    FX_SLOT_FREE | FX_FINISH)                        \
    X(RUN_RUNNING, RUN_ON_PAUSE,   RUN_PAUSED,    FX_JOBS_HOLD)                                    \
    X(RUN_WAITING, RUN_ON_PAUSE,   RUN_PAUSED,    FX_JOBS_HOLD)                                    \
    X(RUN_PAUSED,  RUN_ON_RESUME,  RUN_RUNNING,   FX_JOBS_RELEASE)                                 \
    X(RUN_FAILED,  RUN_ON_RETRY,   RUN_PENDING,   FX_SLOT_TAKE)                                    \
    X(RUN_TIMED_OUT, RUN_ON_RETRY, RUN_PENDING,   FX_SLOT_TAKE)                                    \
    X(RUN_PENDING, RUN_ON_CANCEL,  RUN_CANCELLED, FX_SLOT_FREE | FX_JOBS_CANCEL | FX_FINISH)       \
    X(RUN_RUNNING, RUN_ON_CANCEL,  RUN_CANCELLED, FX_SLOT_FREE | FX_JOBS_CANCEL | FX_FINISH)       \
    X(RUN_WAITING, RUN_ON_CANCEL,  RUN_CANCELLED, FX_SLOT_FREE | FX_JOBS_CANCEL | FX_FINISH)       \
    X(RUN_PAUSED,  RUN_ON_CANCEL,  RUN_CANCELLED, FX_SLOT_FREE | FX_JOBS_CANCEL | FX_FINISH)       \
    X(RUN_QUEUED,  RUN_ON_GIVE_UP, RUN_FAILED,    FX_QUEUE_LEAVE | FX_FINISH)                      \
    X(RUN_PENDING, RUN_ON_GIVE_UP, RUN_FAILED,    FX_SLOT_FREE | FX_JOBS_CANCEL | FX_FINISH)       \
    X(RUN_RUNNING, RUN_ON_GIVE_UP, RUN_FAILED,    FX_SLOT_FREE | FX_JOBS_CANCEL | FX_FINISH)       \
    X(RUN_WAITING, RUN_ON_GIVE_UP, RUN_FAILED,    FX_SLOT_FREE | FX_JOBS_CANCEL | FX_FINISH)       \
    X(RUN_PAUSED,  RUN_ON_GIVE_UP, RUN_FAILED,    FX_SLOT_FREE | FX_JOBS_CANCEL | FX_FINISH)
/* clang-format on */

struct run_change {
    enum run_status to;
    unsigned effects;
};

/* Pure. ERR_STATUS_CONFLICT when the status has no such edge; *ret is then untouched. */
MUST_CHECK enum err run_decide(enum run_status from, enum run_event on, struct run_change *ret);

/* A set of statuses has a bit for each. */
enum { RUN_ANY_STATUS = 0 };
static inline unsigned run_status_bit(enum run_status status)
{
    return 1u << status;
}

const char *run_status_name(enum run_status status);
/* RUN_STATUS_COUNT when there is no such status. */
enum run_status run_status_of(struct str name);
bool run_holds_slot(enum run_status status);
bool run_has_ended(enum run_status status);

#endif
