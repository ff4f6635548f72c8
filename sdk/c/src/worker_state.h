/* What a worker holds and what it has to send next: pure decisions, without I/O or a clock of its
 * own. The caller holds `lock`. `version` changes whenever something happens that others may wait
 * for. */
#ifndef PAWL_WORKER_STATE_H
#define PAWL_WORKER_STATE_H

#include <pthread.h>

#include "pawl.h"

/* A job under lease. */
struct held {
    struct held *next;         /* in the state */
    struct held *next_release; /* in a lane that gives it back */
    int users;                 /* the state, and everyone who works on it */
    json_t *job;
    const char *job_id, *token; /* of the job */
    double beat_at_ms;
    bool in_state;  /* among the jobs that the state holds */
    bool running;   /* its handler has not ended */
    bool cancelled; /* it is gone: nothing is reported */
    json_t *progress;
};

struct worker_state {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* on CLOCK_MONOTONIC */
    unsigned long version;
    char *worker_id;
    json_t *queues;
    int concurrency;
    int64_t lease_ms, wait_ms;
    struct held
        *held; /* by lease: a job that was suspended may be back before its old handler has ended */
    json_t *results, *reporting;
    json_t *alone; /* leases whose results go one by one, because a report with them was refused */
    bool polling, stopping, abandoned;
};

/* The queues are given away. */
bool state_init(struct worker_state *state, const char *worker_id, json_t *queues, int concurrency,
                int64_t lease_ms, int64_t wait_ms);
void state_end(struct worker_state *state);

struct held *held_share(struct held *held);
void held_drop(struct held *held);

void state_touch(struct worker_state *state);
int state_free_slots(const struct worker_state *state);

/* Nothing is left to do for a worker that stops. */
bool state_done(const struct worker_state *state);

void state_stop(struct worker_state *state);

/* Forget what is left: its leases expire. */
void state_abandon(struct worker_state *state);

/* The claim to send now, or NULL. While results are waiting, the report carries it. */
json_t *state_begin_poll(struct worker_state *state);
void state_end_poll(struct worker_state *state);

/* A job that arrived is held from now on; the result is shared with the caller. NULL if it is not a
 * job. */
struct held *state_take(struct worker_state *state, json_t *job, double now_ms);

/* A handler has ended. Without a result (given away), or if the job is gone, nothing is reported.
 */
void state_finish(struct worker_state *state, struct held *held, json_t *result);

/* All results that are waiting, as far as they fit into one call, and a claim for the free slots;
 * or NULL. */
json_t *state_begin_report(struct worker_state *state);

/* The server's answers, in the order of the items. */
void state_reported(struct worker_state *state, const json_t *results);

/* The whole report was refused: its items are sent one by one, and one that is alone fails. */
void state_report_refused(struct worker_state *state, const char *code, const char *detail);

/* A job whose heartbeat is due: it runs, or its result waits. Not shared; NULL if there is none. */
struct held *state_due(const struct worker_state *state, double now_ms);

/* When the next heartbeat is due; 0: none is. */
double state_next_beat(const struct worker_state *state);
void state_beaten(struct worker_state *state, struct held *held, double now_ms);

/* No answer: try again soon. */
void state_not_beaten(struct worker_state *state, struct held *held, double now_ms);

/* The job is gone: its result will not be reported. */
void state_lose(struct worker_state *state, struct held *held);

#endif
