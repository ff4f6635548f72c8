/* The relay: tells the bus of everything that the feed has, in its order, on a thread of its own.
 *
 *   feed ──▶ window ──▶ bus ──▶ acknowledged ──▶ UC_MARK_RELAYED (the mark `bus`)
 *                        └────▶ refused for good ──▶ parked, with the mark
 *
 * The mark moves after the acknowledgement and is written by the writer, some time later. So after
 * a crash messages are sent again, under the same ids; none is left out. Messages of one run go out
 * one after the other. While the bus is away the feed waits, and nothing else does.
 *
 * What follows relay_start() is for the HTTP loop's thread. */
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
    struct offered_queues queues;     /* their jobs are offered on the bus; names outlive it */
    int event_fd;                     /* written when relay_tick() has something to do */
    atomic_llong *unpublished_events; /* events that are not acknowledged yet: the writer adds, the
                                         relay takes off */
    /* Has the op run by the writer; its done() follows later. */
    void (*submit)(void *ctx, struct op *op);
    void *ctx;
};

/* How many events the bus has not been told of: before the writer begins. */
MUST_CHECK enum err relay_count_unpublished(struct db *db, int64_t *ret);

MUST_CHECK enum err relay_start(const struct relay_config *config, struct problem *p,
                                struct relay **ret);
/* It must be idle. */
void relay_free(struct relay *relay);

/* The feed has grown: the relay reads it soon. Cheap; from any thread, NULL is fine. */
void relay_wake(struct relay *relay);

/* Wakes the thread when there is something to send; has written how far it has come. */
void relay_tick(struct relay *relay, int64_t mono_ms);
/* How long the loop may sleep; -1: as long as it likes. */
int relay_timeout_ms(struct relay *relay, int64_t mono_ms);

/* No more is sent; what is acknowledged is still marked. */
void relay_drain(struct relay *relay);
bool relay_idle(struct relay *relay);

struct relay_figures {
    int64_t depth;  /* events that are not acknowledged yet */
    int64_t lag_ms; /* since the oldest of them happened */
    struct bus_state bus;
};
void relay_figures(struct relay *relay, struct relay_figures *ret);

#endif
