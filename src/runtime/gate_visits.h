/* Visits to a gate outside the store (gate/gate.h). A start whose tenant has such a gate visits it
 * before the writer decides it:
 *
 *   asking ─▶ inside ─▶ leaving        the writer decides the start while it is inside
 *     ▲ ▼        (busy or down: again after a delay by the tenant's policy, within its budget)
 *   waiting
 *
 * A visit ends only when what it may have taken has been given back, whatever became of its start:
 * it was admitted or refused, it failed, its budget was over, its caller disconnected, the server
 * drains. What cannot be given back is counted under the name of that path, and tried again until
 * it would have expired anyway.
 *
 * Once a second a slice of all reservations is compared with the store: one whose key the store
 * has decided serves nobody, whoever left it, and is removed.
 *
 * Used on the HTTP loop's thread only. */
#ifndef PAWL_RUNTIME_GATE_VISITS_H
#define PAWL_RUNTIME_GATE_VISITS_H

#include "base/hash_map.h"
#include "base/metrics.h"
#include "core/txn/op.h"
#include "gate/gate.h"

struct gate_visits_hooks {
    void *ctx;
    void (*submit)(void *ctx, struct op *op); /* it is inside, or decided: go on with it */
    void (*answer)(void *ctx, struct op *op); /* its visit is over: answer it as it is */
    /* Another start with its key was decided meanwhile: true when that is the answer of this one,
     * which it then has. */
    bool (*replay)(void *ctx, struct op *op);
    bool (*knows_key)(void *ctx, struct str tenant, struct str key);
};

/* What it points to outlives the visits. */
struct gate_visits_config {
    const struct env *env;
    struct gate *gate; /* NULL: none */
    struct gate_visits_hooks hooks;
    struct metric *requests;         /* by answer */
    struct metric *releases;         /* by outcome */
    struct metric *cleanup_failures; /* by path */
};

struct gate_visits {
    struct gate_visits_config config;
    struct hash_map by_token;
    struct gate_list *list;
    bool lists;          /* a GATE_LIST is under way */
    int64_t list_due_ms; /* the next one */
    bool draining;
};

/* False when memory ran out; release it all the same. */
MUST_CHECK bool gate_visits_init(struct gate_visits *v, const struct gate_visits_config *config);
/* After the gate was stopped. */
void gate_visits_release(struct gate_visits *v);

/* For an op that wants to pass the gate. False when it cannot visit: answer it now. */
MUST_CHECK bool gate_visits_add(struct gate_visits *v, struct op *op);
/* The op was decided: ends its visit, if it has one. */
void gate_visits_end(struct gate_visits *v, struct op *op);
/* The caller of this op has disconnected: if the op waits at the gate, it is answered. */
void gate_visits_caller_left(struct gate_visits *v, const struct op *op);

/* What the gate has answered. */
void gate_visits_collect(struct gate_visits *v);
/* Asks again where a delay is over, and gives up where a budget is. */
void gate_visits_tick(struct gate_visits *v, int64_t mono_ms);
/* From now on nobody waits: each start that does gets one more try. */
void gate_visits_drain(struct gate_visits *v);
/* How long the loop may sleep; -1 when no visit is under way. */
int gate_visits_timeout_ms(const struct gate_visits *v);
bool gate_visits_idle(const struct gate_visits *v);

#endif
