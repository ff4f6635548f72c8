/* One slot of a worker: takes a job, runs the command for it and reports the result.
 *
 *            taken              command ended            answered
 *    free ────────────▶ running ────────────▶ reporting ──────────▶ free
 *      │ late            ▲   │ lease lost,        ▲
 *      ▼                 │   │ output too large,  │ output too large
 *   checking ────────────┘   ▼ shutdown           │
 *      │                   ending ────────────────┤
 *      │ shutdown            │ └─── lease lost: no report ────────▶ free
 *      └────────────▶ releasing ◀── shutdown
 *
 * free       has no job.
 * checking   has a job whose lease may already have expired; a heartbeat finds out.
 * running    the command works; a heartbeat goes out every third of the lease.
 * ending     the command got SIGTERM; `after` is the state that follows its exit.
 * reporting  sends the result until the server accepts or refuses it.
 * releasing  gives the job back, so that other workers need not wait until the lease expires.
 *
 * Nothing here blocks. The worker calls worker_slot_act when something is due, worker_slot_pump
 * after a pipe moved and worker_slot_answered when a request has ended. */
#ifndef PAWL_CLI_WORKER_SLOT_H
#define PAWL_CLI_WORKER_SLOT_H

#include "cli/worker/job_result.h"
#include "cli/worker/worker_pool.h"

enum slot_state {
    SLOT_FREE,
    SLOT_CHECKING,
    SLOT_RUNNING,
    SLOT_ENDING,
    SLOT_REPORTING,
    SLOT_RELEASING,
};

enum slot_call { CALL_NONE, CALL_HEARTBEAT, CALL_RESULT, CALL_RELEASE };

struct worker_slot {
    struct worker_pool *pool;
    enum slot_state state;
    enum slot_state after; /* while ending: free, reporting or releasing */
    json_t *job;           /* as claimed; NULL: free */
    struct job_process process;
    struct client client;
    struct reply reply;
    enum slot_call call; /* in flight */
    int64_t called_at;
    int tries; /* of the same request, in a row */
    struct buf path;
    struct buf token; /* the body of heartbeats and of a release */
    struct job_result result;
    int64_t lease_until; /* as far as we know */
    int64_t next_at;     /* when the next request is due */
    int64_t kill_at;     /* when a command that is ending gets SIGKILL */
};

/* False when memory ran out; worker_slot_close is due in both cases. */
MUST_CHECK bool worker_slot_open(struct worker_slot *slot, struct worker_pool *pool);
/* Kills a running command and cancels a request in flight. */
void worker_slot_close(struct worker_slot *slot);

/* A slot whose last request is still in flight is not free yet. */
bool worker_slot_is_free(const struct worker_slot *slot);
/* Starts the command for a job; the slot is free. `late`: the answer took so long that the lease
 * may have expired, so a heartbeat goes first. */
void worker_slot_take(struct worker_slot *slot, json_t *job, bool late, int64_t now);
/* Gives a job back without working on it; the slot is free. */
void worker_slot_return(struct worker_slot *slot, json_t *job, int64_t now);
/* Kills the command and gives the job back. A report in flight continues. */
void worker_slot_abort(struct worker_slot *slot, int64_t now);

/* When worker_slot_act is due. */
int64_t worker_slot_due(const struct worker_slot *slot);
void worker_slot_act(struct worker_slot *slot, int64_t now);
void worker_slot_pump(struct worker_slot *slot, int64_t now);
/* The request on slot->client has ended. */
void worker_slot_answered(struct worker_slot *slot, enum cli_exit rc, int64_t now);

#endif
