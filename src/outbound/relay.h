/* The relay: publishes every event of the feed to the bus, in order, on a thread of its own.
 *
 *   feed ──▶ window ──▶ bus ──▶ acknowledged ──▶ UC_MARK_RELAYED (the mark `bus`)
 *                        └────▶ refused ──▶ parked, in the same transaction as the mark
 *
 * The mark moves after the acknowledgement, when the writer writes it. So after a crash some
 * messages are sent again, under the same ids; none is left out. Messages of one run are sent one
 * after the other. While the bus is away only the feed waits.
 *
 * Except for relay_wake(), the functions are for the HTTP loop's thread. */
#ifndef PAWL_OUTBOUND_RELAY_H
#define PAWL_OUTBOUND_RELAY_H

#include "bus/bus.h"
#include "core/txn/op.h"
#include "outbound/relay_message.h"

#include <stdatomic.h>

struct db;
struct relay;

struct relay_config {
    struct bus *bus; /* outlives the relay */
    struct str store_url;
    const struct env *env;
    struct offered_queues queues; /* their jobs are offered on the bus; names outlive the relay */
    int event_fd;                 /* written when relay_tick() has something to do */
    atomic_llong *unpublished_events; /* the writer adds to it, the relay subtracts */
    /* Blocks until all that was just read is on disk; false: the store failed. */
    bool (*wait_durable)(void *ctx);
    /* Has the writer run the op; its done() follows later. */
    void (*submit)(void *ctx, struct op *op);
    void *ctx;
};

/* How many events the bus has not acknowledged. Call it before the writer starts. */
MUST_CHECK enum err relay_count_unpublished(struct db *db, int64_t *ret);

MUST_CHECK enum err relay_start(const struct relay_config *config, struct problem *p,
                                struct relay **ret);
/* It must be idle. */
void relay_free(struct relay *relay);

/* The feed has grown: the relay reads it soon. Cheap; from any thread, NULL is fine. */
void relay_wake(struct relay *relay);

/* Has the writer store how far the relay has come. */
void relay_tick(struct relay *relay, int64_t mono_ms);
/* How long until relay_tick() has something to do; -1: nothing is due. */
int relay_timeout_ms(struct relay *relay, int64_t mono_ms);

/* Sends no more; what was acknowledged is still marked. */
void relay_drain(struct relay *relay);
bool relay_idle(struct relay *relay);

struct relay_figures {
    int64_t depth;  /* events that are not acknowledged */
    int64_t lag_ms; /* since the oldest of them happened */
    struct bus_state bus;
};
void relay_figures(struct relay *relay, struct relay_figures *ret);

#endif
