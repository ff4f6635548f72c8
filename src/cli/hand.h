/* One hand of a worker: it takes a job, has the command work on it and reports what came of it.
 *
 *            taken              command over             answered
 *    free ────────────▶ running ────────────▶ reporting ──────────▶ free
 *      │ late            ▲   │ lease lost,        ▲
 *      ▼                 │   │ output too large,  │ output too large
 *   checking ────────────┘   ▼ let go             │
 *      │                   ending ────────────────┤
 *      │ let go              │ └─── lease lost: nothing is said ──▶ free
 *      └────────────▶ releasing ◀── let go
 *
 * free       has no job.
 * checking   has a job whose lease may have ended on the way here: a heartbeat says so.
 * running    the command works; a heartbeat goes out at each third of the lease.
 * ending     the command was told to end; `after` says what comes when it has.
 * reporting  the result is handed in, again and again, until the server has taken or refused it.
 * releasing  the job is given back, so that others need not wait for the end of its lease.
 *
 * Nothing here waits. The worker calls hand_act when something is due, hand_pump when a pipe moved
 * and hand_answered when a request is over. */
#ifndef PAWL_CLI_HAND_H
#define PAWL_CLI_HAND_H

#include "cli/child.h"
#include "cli/session.h"

/* For times that do not come. */
#define HAND_NEVER INT64_MAX

/* What the hands of a worker share. */
struct crew {
    const struct session *session;
    CURLM *multi;
    int64_t lease_ms;
    int64_t grace_ms;  /* from SIGTERM to SIGKILL */
    bool pass_api_key; /* commands get our PAWL_API_KEY */
    int start_failure; /* errno of a command that was not started, until the worker clears it */
    bool away;         /* the server gave no answer, or none that counts */
};

enum hand_state {
    HAND_FREE,
    HAND_CHECKING,
    HAND_RUNNING,
    HAND_ENDING,
    HAND_REPORTING,
    HAND_RELEASING,
};

enum hand_call { CALL_NONE, CALL_HEARTBEAT, CALL_RESULT, CALL_RELEASE };

struct hand {
    struct crew *crew;
    enum hand_state state;
    enum hand_state after; /* of ending: free, reporting or releasing */
    json_t *job;           /* as claimed; NULL: free */
    struct child child;
    struct client client;
    struct reply reply;
    enum hand_call call; /* under way */
    int64_t called_at;
    int tries; /* of the same request in a row */
    struct buf path;
    struct buf token;    /* the body of heartbeats and of a release */
    struct buf result;   /* that of the result */
    bool failed;         /* the result is a failure */
    char code[32];       /* of the failure */
    int64_t lease_until; /* as far as we know */
    int64_t next_at;     /* when the next request is due */
    int64_t kill_at;     /* of ending: then SIGKILL */
};

/* False when memory ran out; hand_close is due in both cases. */
MUST_CHECK bool hand_open(struct hand *h, struct crew *crew);
/* Kills a command that runs, and breaks off a request. */
void hand_close(struct hand *h);

/* One whose last request is still under way is not free yet. */
bool hand_is_free(const struct hand *h);
/* Of a free one. `late`: the job was handed out so long ago that its lease may be over. */
void hand_take(struct hand *h, json_t *job, bool late, int64_t now);
/* Likewise, for a job that nobody is to work on now. */
void hand_return(struct hand *h, json_t *job, int64_t now);
/* Kills the command and gives the job back; a result that is being reported goes on. */
void hand_let_go(struct hand *h, int64_t now);

/* When hand_act is due. */
int64_t hand_due(const struct hand *h);
void hand_act(struct hand *h, int64_t now);
void hand_pump(struct hand *h, int64_t now);
/* The request on h->client is over. */
void hand_answered(struct hand *h, enum cli_exit rc, int64_t now);

/* --- for hands and the worker's claims --- */

enum answer {
    ANSWER_TAKEN,
    ANSWER_LOST, /* the lease has ended, or there is no such job */
    ANSWER_REFUSED,
    ANSWER_LATER, /* no answer, or one that may be another later */
};
/* Of the request on c, which is over. A server that is away is told of once, and so is its return.
 */
enum answer crew_judge(struct crew *crew, const struct client *c, enum cli_exit rc);
/* The caller owns it; NULL when there is none. */
json_t *answer_json(const struct reply *reply);

/* Random, below a bound that doubles with each try up to five seconds. */
int64_t hand_backoff_ms(int tries);

#endif
