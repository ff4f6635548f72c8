/* The worker behind pawl.h: what is registered, its three lanes, and the execution of a job. */
#ifndef PAWL_WORKER_H
#define PAWL_WORKER_H

#include "client.h"
#include "lane.h"
#include "worker_state.h"

struct task {
    struct task *next;
    char *name;
    pawl_task_fn *handler;
    void *user;
};

struct pawl_worker {
    struct pawl_client *client;
    struct worker_state state;
    struct worker_ports ports;
    struct task *tasks;
    struct pawl_entity_type *entities;
    json_t *definitions; /* that are stored at the start */
    char mistake[256];   /* of a registration */
    bool no_apply;
    double grace_ms;
    void (*log)(void *user, const char *text);
    void *log_user;
    struct abort *claim_abort;
    struct lane lanes[LANES];
    pthread_t threads[LANES];
    /* All below: under the state's lock. */
    int users; /* the owner, and each handler that runs */
    bool started, joined, grace_over;
    int wake_fd; /* of pawl_worker_run, or -1 */
    struct pawl_error failure;
};

void worker_lock(struct pawl_worker *worker);
void worker_unlock(struct pawl_worker *worker);
void worker_log(const struct pawl_worker *worker, const char *text, ...)
    __attribute__((format(printf, 2, 3)));

/* Something that a retry cannot mend: the worker stops. The caller holds the lock. */
void worker_fail(struct pawl_worker *worker, const struct pawl_error *error);

/* The first mistake of a registration is kept for the start. */
void worker_mistake(struct pawl_worker *worker, const char *mistake);

/* Executes a job and hands in its result. */
void worker_run_job(struct pawl_worker *worker, struct held *held);

#endif
