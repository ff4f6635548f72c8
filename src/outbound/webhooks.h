/* Sends deliveries to the receivers of webhooks and brings back what they answered. On the HTTP
 * loop's thread only, but for the calls themselves (bus/http_caller.h).
 *
 *   pending ── UC_TAKE_DELIVERIES ──▶ sending ── http_caller ──▶ UC_FINISH_DELIVERY ──▶ delivered,
 *      ▲                                 │                                  failed, or pending
 * again └── the server has stopped ◀──────┘
 *
 * So an event may be sent more than once, always under the same webhook-id. */
#ifndef PAWL_OUTBOUND_WEBHOOKS_H
#define PAWL_OUTBOUND_WEBHOOKS_H

#include "core/txn/op.h"
#include "domain/address.h"

#include <stdatomic.h>

struct metric;
struct webhooks;

struct webhooks_config {
    enum address_reach reach;
    const struct env *env;
    int event_fd;                /* written when webhooks_collect() has something to do */
    atomic_bool *has_deliveries; /* set by the writer: something is to be sent, now or later */
    struct metric *attempts;     /* counts what became of each */
    /* Has the op run by the writer; its done() follows later. */
    void (*submit)(void *ctx, struct op *op);
    void *ctx;
};

MUST_CHECK enum err webhooks_start(const struct webhooks_config *config, struct problem *p,
                                   struct webhooks **ret);
/* Nothing may be under way. */
void webhooks_free(struct webhooks *webhooks);

/* Brings back what is over. */
void webhooks_collect(struct webhooks *webhooks);
/* Takes what is due, if there is room, and tries again what could not be stored. */
void webhooks_tick(struct webhooks *webhooks, int64_t mono_ms);

/* From now on nothing is taken; what is under way may end within CALL_DRAIN_MS, then it is given
 * back. */
void webhooks_drain(struct webhooks *webhooks, int64_t mono_ms);
bool webhooks_idle(const struct webhooks *webhooks);

#endif
