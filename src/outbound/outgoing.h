/* Outgoing calls: takes the work of every kind (http steps, webhook deliveries) from the writer,
 * has the calls made and brings the results back.
 *
 *   UC_TAKE_… ──▶ shape the call ──▶ bus/http_caller ──▶ read its result ──▶ UC_FINISH_…
 *
 * Each kind has a queue and a caller of its own, so that slow receivers of webhooks do not hold up
 * http steps. A result that cannot be stored for the moment is kept and stored later. If the server
 * stops before that, the work is taken again and the call made again, under the same key or id.
 *
 * On the HTTP loop's thread only; the calls themselves are made on the callers' threads. */
#ifndef PAWL_OUTBOUND_OUTGOING_H
#define PAWL_OUTBOUND_OUTGOING_H

#include "core/txn/op.h"
#include "domain/address.h"

#include <stdatomic.h>

/* The kinds, and the rows that describe them (outgoing_kind.h). */
#define OUTGOING_KINDS(X)                   \
    X(OUTGOING_HTTP_STEPS, HTTP_STEP_CALLS) \
    X(OUTGOING_DELIVERIES, WEBHOOK_DELIVERIES)

enum outgoing_queue {
#define X(symbol, kind) symbol,
    OUTGOING_KINDS(X)
#undef X
        OUTGOING_COUNT
};

struct metric;
struct outgoing;

struct outgoing_config {
    enum address_reach reach;
    const struct env *env;
    int event_fd; /* written when outgoing_collect() has something to do */
    /* Set by the writer: the queue has work, now or later. */
    atomic_bool *ready[OUTGOING_COUNT];
    /* Counts results by op->answer.outcome; NULL: they are not counted. */
    struct metric *outcomes[OUTGOING_COUNT];
    /* Has the writer run the op; its done() follows later. */
    void (*submit)(void *ctx, struct op *op);
    void *ctx;
};

MUST_CHECK enum err outgoing_start(const struct outgoing_config *config, struct problem *p,
                                   struct outgoing **ret);
/* It must be idle. */
void outgoing_free(struct outgoing *out);

/* Sends the results of calls that have ended to the writer. */
void outgoing_collect(struct outgoing *out);
/* Takes work if some is ready and there is room; tries again to store results. */
void outgoing_tick(struct outgoing *out, int64_t mono_ms);

/* Takes no more work. Calls under way may end within CALL_DRAIN_MS; then they are aborted and their
 * work is given back. */
void outgoing_drain(struct outgoing *out, int64_t mono_ms);
bool outgoing_idle(const struct outgoing *out);

#endif
