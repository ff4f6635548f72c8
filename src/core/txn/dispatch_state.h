/* Which queued runs have to be looked at although no slot was freed for them: after a limit was
 * raised, when the server starts, after a rollback. core/admission/dispatch_due.h sets it and
 * core/run/dispatch.h works it off. */
#ifndef PAWL_CORE_TXN_DISPATCH_STATE_H
#define PAWL_CORE_TXN_DISPATCH_STATE_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

struct dispatch_state {
    bool sweeping; /* queue groups that wait for a limit key are looked at, from here on … */
    int64_t sweep_tenant;
    int64_t sweep_scope;
    int64_t sweep_last; /* … up to this tenant */
    bool draining;      /* tenants take turns to start what can start, from here on */
    int64_t drain_tenant;
    bool drained_any; /* in this round */
};

/* NULL when memory ran out. Everything has to be looked at. */
MUST_CHECK struct dispatch_state *dispatch_state_new(void);
/* Everything has to be looked at again. */
void dispatch_state_forget(struct dispatch_state *state);
void dispatch_state_free(struct dispatch_state *state);

/* The queues of these tenants, `first` to `last`, have to be looked at. */
void dispatch_state_sweep(struct dispatch_state *state, int64_t first, int64_t last);

#endif
