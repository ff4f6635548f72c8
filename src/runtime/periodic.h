/* What the engine does by itself every so often: it checks the counters against the runs, and it
 * writes the last uses of API keys to the store. Used on the HTTP loop's thread only. */
#ifndef PAWL_RUNTIME_PERIODIC_H
#define PAWL_RUNTIME_PERIODIC_H

#include "core/txn/op.h"
#include "runtime/auth.h"

struct periodic;

/* `submit` takes each op as if a caller had sent it; `auth` outlives it. */
MUST_CHECK struct periodic *periodic_new(struct auth *auth,
                                         void (*submit)(void *ctx, struct op *op), void *ctx);
/* None of its ops may be under way. */
void periodic_free(struct periodic *periodic);

/* Submits what is due, each kind only when its last op is over. Both are due at
 * the first tick. */
void periodic_tick(struct periodic *periodic, int64_t mono_ms);
/* None of its ops is under way. */
bool periodic_idle(const struct periodic *periodic);

#endif
