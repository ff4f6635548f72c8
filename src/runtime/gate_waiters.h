/* Starts that found their tenant's gate busy. Each one is submitted again after a delay that
 * follows its gate policy, until that policy's maximum wait is over. Used on the HTTP loop's thread
 * only. */
#ifndef PAWL_RUNTIME_GATE_WAITERS_H
#define PAWL_RUNTIME_GATE_WAITERS_H

#include "core/txn/op.h"

struct gate_waiters {
    const struct env *env;
    void (*submit)(void *ctx, struct op *op);
    void *ctx;
    struct op *first; /* linked by `next` */
    size_t count;
};

/* `submit` takes an op whose delay is over. */
void gate_waiters_init(struct gate_waiters *w, const struct env *env,
                       void (*submit)(void *ctx, struct op *op), void *ctx);

/* Keeps the op until its next try. False when its maximum wait is over or too many ops wait: answer
 * it now. */
MUST_CHECK bool gate_waiters_add(struct gate_waiters *w, struct op *op);
/* Submits every op whose delay is over; with `all`, every op. */
void gate_waiters_tick(struct gate_waiters *w, int64_t mono_ms, bool all);
/* How long the loop may sleep; -1 when no op waits. */
int gate_waiters_timeout_ms(const struct gate_waiters *w);

#endif
