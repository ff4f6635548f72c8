/* Callers that wait: a claim for a job, a start for the end of its run, an update of an entity for
 * its outcome. Used on the HTTP loop's thread, except for the source of claims.
 *
 * A job that becomes ready does not miss a claim that waits for it:
 *  - the writer takes a claim into the transaction that makes the job ready, if one waits here
 * then;
 *  - a job that this transaction did not lease has an effect, which wakes a claim after the commit.
 *    Effects arrive in the order of commits, behind the ops of their commit. So a claim that found
 *    nothing before the job was there, or joined and got nothing, waits here again when the effect
 *    arrives;
 *  - a claim that a job woke, and that took others instead, passes the wake-up on. */
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

struct awaited_runs;
struct claim_source;

MUST_CHECK struct waiters *waiters_new(const struct env *env, const struct waiters_hooks *hooks);
void waiters_free(struct waiters *w);

/* Keeps a claim that found no job until its wait_ms, counted from its submission, are over. False
 * when out of memory: answer it now. */
MUST_CHECK bool waiters_add_claim(struct waiters *w, struct op *op);
/* A claim is decided: before it is kept or answered. */
void waiters_claim_decided(struct waiters *w, struct op *op);
/* Keeps a start whose run has not ended, or an update without an outcome. With `read_now` the state
 * is read at once, because the op's answer may be out of date. False when out of memory: answer it
 * now. */
MUST_CHECK bool waiters_add_asking(struct waiters *w, struct op *op, bool read_now);

/* For the writer's thread: see core_config.claims. A claim with an idempotency key does not join:
 * what it was given is not given back when its caller has gone meanwhile. */
struct claim_source waiters_claim_source(struct waiters *w);
/* The runs whose ends are waited for: see core_config.awaited_runs. */
const struct awaited_runs *waiters_awaited_runs(const struct waiters *w);
/* The op that the writer returns is a claim that it took. Call it before the op is answered, or
 * waits again. */
void waiters_returned(struct waiters *w, struct op *op);
/* Answers claims that the writer took and does not return in time; they still come back. */
void waiters_time_out(struct waiters *w, int64_t mono_ms);

/* Wakes the waiters that the effects of a commit concern: claims try again, others read again, or
 * are answered with what the effect shows. */
void waiters_wake(struct waiters *w, const struct effect *first);
/* Handles the answer to a read that a waiter submitted. False when the op is not such a read. */
MUST_CHECK bool waiters_answer(struct waiters *w, struct op *question);
/* Ends waits whose time is over, and claims whose callers have disconnected; with `all`, every
 * wait. */
void waiters_tick(struct waiters *w, int64_t mono_ms, bool all);
/* The caller of this op has disconnected: if it waits, its wait is over. */
void waiters_leave(struct waiters *w, const struct op *op);
/* With the claims that the writer has taken. */
size_t waiters_count(struct waiters *w);

#endif
