/* The worker's three loops, without their threads: each says what it wants next and is given the
 * answer. One claims jobs, one reports results and takes the jobs that come back with the answer,
 * one sends heartbeats. */
#ifndef PAWL_LANE_H
#define PAWL_LANE_H

#include "ports.h"

struct pawl_worker;
struct held;

/* What the lanes and handlers need of the threads around them. Called without the lock. */
struct worker_ports {
    void *at;
    void (*spawn)(void *at, struct held *held);     /* execute a job beside the others */
    void (*cancelled)(void *at, struct held *held); /* its handler was told to stop */
    void (*rest)(void *at, struct held *held,
                 double ms); /* between attempts of a step; ends early if it is cancelled */
};

enum lane_kind { LANE_POLL, LANE_REPORT, LANE_BEAT, LANES };

struct lane {
    struct pawl_worker *worker;
    enum lane_kind kind;
    struct abort *abort; /* of everything but claims */
    struct backoff backoff;
    double pause_until_ms;
    struct held *releases; /* jobs that arrived at a stopping worker */
    bool settles;          /* a claim was answered: its jobs are taken, then it is over */
    json_t *report;        /* until it is answered */
    json_t *results;       /* the answer to it, until the jobs that came with it are taken */
    struct held *beating;
    enum lane_sent { SENT_NOTHING, SENT_CLAIM, SENT_REPORT, SENT_RELEASE, SENT_BEAT } sent;
};

/* What a lane wants: to send a request (which the caller frees), to wait until the state's version
 * is another one or until a time (0: none), or to end. */
struct lane_wish {
    enum { LANE_SEND, LANE_WAIT, LANE_END } kind;
    struct request request;
    struct abort *abort;
    unsigned long version;
    double until_ms;
};

void lane_begin(struct lane *lane, struct pawl_worker *worker, enum lane_kind kind);
void lane_end(struct lane *lane);

struct lane_wish lane_next(struct lane *lane);

/* The answer to what was sent: `response`, or NULL if none came; `error` then says why. */
void lane_answer(struct lane *lane, const struct response *response,
                 const struct pawl_error *error);

#endif
