/* Callers that wait: a claim for a job, a start for the end of its run, an update of an entity for
 * its outcome. Used on the HTTP loop's thread only. Effects arrive in the order of commits, so a
 * waiter that was added before an effect arrives does not miss it. */
#ifndef PAWL_RUNTIME_WAITERS_H
#define PAWL_RUNTIME_WAITERS_H

#include "core/txn/effects.h"
#include "core/txn/op.h"

struct waiters;

struct waiters_hooks {
    void *ctx;
    void (*claim_again)(void *ctx, struct op *op); /* submit the claim again: there may be a job */
    void (*give_up)(void *ctx, struct op *op);     /* its wait is over: answer it as it is */
    /* Submit this read; its answer comes back through waiters_answer(). */
    void (*read_now)(void *ctx, struct op *question);
};

MUST_CHECK struct waiters *waiters_new(const struct env *env, const struct waiters_hooks *hooks);
void waiters_free(struct waiters *w);

/* Keeps a claim that found no job until its wait_ms, counted from its submission, are over. False
 * when out of memory: answer it now. */
MUST_CHECK bool waiters_add_claim(struct waiters *w, struct op *op);
/* Keeps a start whose run has not ended, or an update without an outcome. With `read_now` the state
 * is read at once, because the op's answer may be out of date. False when out of memory: answer it
 * now. */
MUST_CHECK bool waiters_add_asking(struct waiters *w, struct op *op, bool read_now);

/* Wakes the waiters that the effects of a commit concern: claims try again, others read again. */
void waiters_wake(struct waiters *w, const struct effect *first);
/* Handles the answer to a read that a waiter submitted. False when the op is not such a read. */
MUST_CHECK bool waiters_answer(struct waiters *w, struct op *question);
/* Ends waits whose time is over, and claims whose callers have disconnected; with `all`, every
 * wait. */
void waiters_tick(struct waiters *w, int64_t mono_ms, bool all);
/* The caller of this op has disconnected: if it waits, its wait is over. */
void waiters_leave(struct waiters *w, const struct op *op);
size_t waiters_count(const struct waiters *w);

#endif
