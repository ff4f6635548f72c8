/* Which queued runs have to be looked at. */
#include "core/txn/dispatch_state.h"

#include <stdlib.h>

void dispatch_state_sweep(struct dispatch_state *state, int64_t first, int64_t last)
{
    if (state->sweeping) { /* what has not been looked at yet stays in the range */
        first = MIN(first, state->sweep_tenant);
        last = MAX(last, state->sweep_last);
    }
    state->sweeping = true;
    state->sweep_tenant = first;
    state->sweep_scope = 0;
    state->sweep_last = last;
    state->draining = true;
    state->drained_any = true;
}

struct dispatch_state *dispatch_state_new(void)
{
    struct dispatch_state *state = calloc(1, sizeof(*state));
    if (state != NULL)
        dispatch_state_forget(state);
    return state;
}

void dispatch_state_forget(struct dispatch_state *state)
{
    dispatch_state_sweep(state, 0, INT64_MAX);
}

void dispatch_state_free(struct dispatch_state *state)
{
    free(state);
}
