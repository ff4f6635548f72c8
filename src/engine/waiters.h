/* Callers that wait: claims for a job to come, starts for their run to end. On the HTTP loop's
 * thread only. What wakes them arrives with the commits, in their order, so a waiter that is here
 * before the wake is read misses nothing. */
#ifndef PAWL_ENGINE_WAITERS_H
#define PAWL_ENGINE_WAITERS_H

#include "engine/tx.h"

struct waiters;

struct waiters_hooks {
    void *ctx;
    void (*claim_again)(void *ctx, struct op *op); /* there may be work for it */
    void (*give_up)(void *ctx, struct op *op);     /* its time is over: answer as it is */
    /* Ask how the run is now; the answer comes back through waiters_run_read(). */
    void (*read_run)(void *ctx, struct op *reader_op);
};

MUST_CHECK struct waiters *waiters_new(const struct env *env, const struct waiters_hooks *hooks);
void waiters_free(struct waiters *w);

/* A claim that found nothing, until its wait_ms is over (counted from when it was submitted). */
void waiters_add_claim(struct waiters *w, struct op *op);
/* A start whose run is not over. read_now: its status is not known to be current. False: no memory,
 * answer now. */
MUST_CHECK bool waiters_add_run(struct waiters *w, struct op *op, bool read_now);

/* Takes over the list. */
void waiters_wake(struct waiters *w, struct wake *wakes);
/* Is it one of ours? Then it is handled. */
MUST_CHECK bool waiters_run_read(struct waiters *w, struct op *reader_op);
/* Gives up on those whose time is over; with `all` on everyone. */
void waiters_tick(struct waiters *w, int64_t mono_ms, bool all);
size_t waiters_count(const struct waiters *w);

#endif
