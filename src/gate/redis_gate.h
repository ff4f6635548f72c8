/* The gate in Redis: a thread with one connection, which it opens again whenever it is lost. */
#ifndef PAWL_GATE_REDIS_GATE_H
#define PAWL_GATE_REDIS_GATE_H

#include "base/env.h"
#include "gate/gate.h"
#include "gate/redis_url.h"

/* Does not connect yet. NULL: no memory. The caller frees it by gate->free(). */
MUST_CHECK struct gate *redis_gate_new(const struct redis_url *url, const struct env *env);

#endif
