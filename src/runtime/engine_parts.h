/* The parts of an engine: connections, threads, caches and what they share. Opened in the order in
 * which they need each other, closed in reverse. The engine (engine.c) uses them; none of them
 * knows the engine, they call it by hooks. */
#ifndef PAWL_RUNTIME_ENGINE_PARTS_H
#define PAWL_RUNTIME_ENGINE_PARTS_H

#include "outbound/oidc.h"
#include "outbound/outgoing.h"
#include "outbound/relay.h"
#include "outbound/span_export.h"
#include "outbound/subscriptions.h"
#include "runtime/body_thread.h"
#include "runtime/durability.h"
#include "runtime/engine_config.h"
#include "runtime/engine_metrics.h"
#include "runtime/gate_visits.h"
#include "runtime/loop_reader.h"
#include "runtime/periodic.h"
#include "runtime/readers.h"
#include "runtime/waiters.h"
#include "runtime/writer.h"

/* How the parts hand ops to the engine, on the HTTP loop's thread. */
struct engine_hooks {
    void *ctx;
    void (*submit)(void *ctx, struct op *op);      /* as if a caller had sent it */
    void (*submit_own)(void *ctx, struct op *op);  /* a write, which no limit and no drain stops */
    void (*submit_read)(void *ctx, struct op *op); /* a read; the same */
    bool (*wait_durable)(void *ctx); /* from any thread: all that can be seen is on disk */
    void (*expire_waiter)(void *ctx, struct op *op); /* its wait is over: answer it */
    struct gate_visits_hooks gate;
};

struct engine_parts {
    const struct env *env;
    struct engine_metrics metrics;
    struct read_metrics_input metrics_input;
    struct gate *gate;                   /* NULL: none */
    struct bus *bus;                     /* NULL: none */
    struct tenant_labels *writer_labels; /* the writer's */
    struct worker_polls *polls;
    int event_fd;
    struct durability durability;
    struct db *writer;
    struct loop_reader *reader; /* this thread's own: replays and API keys */
    struct writer *commits;
    struct readers *readers;
    struct body_thread *bodies;
    struct waiters *waiters;
    struct gate_visits gate_visits;
    struct periodic *periodic;
    struct replay_stats *stats;
    struct minute_stats *minutes;
    struct sessions *sessions;
    struct auth *auth;
    struct subscriptions *subscriptions;
    atomic_int waiting_callers;
    atomic_ullong auth_epoch;
    struct outgoing *outgoing;
    atomic_bool has_calls;
    struct relay *relay;             /* NULL: there is no bus */
    atomic_llong unpublished_events; /* events that the bus has not acknowledged */
    atomic_bool has_deliveries;
    struct oidc *oidc;         /* NULL: there is no provider */
    struct span_export *spans; /* NULL: they are not exported */
};

/* Opens and migrates the store, starts all threads. `parts` is zeroed. After an error, close the
 * parts that were opened by engine_parts_close(). */
MUST_CHECK enum err engine_parts_open(struct engine_parts *parts,
                                      const struct engine_config *config,
                                      const struct engine_hooks *hooks, struct problem *p);
/* Finishes what was handed to the threads, then ends them. */
void engine_parts_close(struct engine_parts *parts);

#endif
