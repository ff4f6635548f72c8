/* Callers that wait: claims for a job to come, starts for their run to end, updates of an entity
 * for their outcome. On the HTTP loop's thread only. Effects arrive with the commits, in their
 * order, so a waiter that is here before an effect is read misses nothing. */
#ifndef PAWL_RUNTIME_WAITERS_H
#define PAWL_RUNTIME_WAITERS_H

#include "core/txn/effects.h"
#include "core/txn/op.h"

struct waiters;

struct waiters_hooks {
    void *ctx;
    void (*claim_again)(void *ctx, struct op *op); /* there may be work for it */
    void (*give_up)(void *ctx, struct op *op);     /* its time is over: answer as it is */
    /* Ask how it is now; the answer comes back through waiters_answer(). */
    void (*read_now)(void *ctx, struct op *question);
};

MUST_CHECK struct waiters *waiters_new(const struct env *env, const struct waiters_hooks *hooks);
void waiters_free(struct waiters *w);

/* A claim that found nothing, until its wait_ms is over (counted from when it was submitted). */
void waiters_add_claim(struct waiters *w, struct op *op);
/* A start whose run is not over, or an update without an outcome. read_now: what it says is not
 * known to be current. False: no memory, answer now. */
MUST_CHECK bool waiters_add_asking(struct waiters *w, struct op *op, bool read_now);

/* The effects of a commit: those that they concern try or ask again. */
void waiters_wake(struct waiters *w, const struct effect *first);
/* Is it one of ours? Then it is handled. */
MUST_CHECK bool waiters_answer(struct waiters *w, struct op *question);
/* Gives up on those whose time is over and claims whose callers have gone; with `all` on everyone.
 */
void waiters_tick(struct waiters *w, int64_t mono_ms, bool all);
size_t waiters_count(const struct waiters *w);

#endif
