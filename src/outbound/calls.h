/* The calls of http steps: takes their jobs, has the calls made, brings the results back. On the
 * HTTP loop's thread only.
 *
 *   pending ── UC_TAKE_CALLS ──▶ dispatched ── http_caller ──▶ UC_FINISH_CALL ──▶ succeeded,
 * failed, ▲                              │                                           scheduled
 * again └── its lease ends: the server has stopped meanwhile ◀┘
 *
 * A job is dispatched before its call is made, and a result counts only if that is still the job's
 * last hand-out. So a step's call may be made more than once, always with the same Idempotency-Key,
 * and its result is taken once. */
#ifndef PAWL_OUTBOUND_CALLS_H
#define PAWL_OUTBOUND_CALLS_H

#include "core/txn/op.h"
#include "domain/address.h"

#include <stdatomic.h>

struct calls;

struct calls_config {
    enum address_reach reach;
    const struct env *env;
    int event_fd;           /* written when calls_collect() has something to do */
    atomic_bool *has_calls; /* set by the writer: a job is pending */
    /* Has the op run by the writer; its done() follows later. */
    void (*submit)(void *ctx, struct op *op);
    void *ctx;
};

MUST_CHECK enum err calls_start(const struct calls_config *config, struct problem *p,
                                struct calls **ret);
/* Nothing may be under way. */
void calls_free(struct calls *calls);

/* Brings back what is over. */
void calls_collect(struct calls *calls);
/* Takes what is pending, if there is room, and tries again what could not be stored. */
void calls_tick(struct calls *calls, int64_t mono_ms);

/* From now on nothing is taken; what is under way may end within CALL_DRAIN_MS, then its jobs are
 * given back. */
void calls_drain(struct calls *calls, int64_t mono_ms);
bool calls_idle(const struct calls *calls);

#endif
