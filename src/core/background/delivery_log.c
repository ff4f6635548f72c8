/* Keeps the log of deliveries bounded. */
#include "core/background/delivery_log.h"

#include "base/limits.h"
#include "core/usecase/outgoing/deliveries.h"

/* The lowest number that a delivery of this time has. */
static int64_t num_of_ms(int64_t ms)
{
    return MAX(ms, (int64_t)0) << 12; /* as uuid_time() counts */
}

/* Disables a webhook whose receiver cannot keep up. *ret_enabled: it is still sent to. */
static enum err stop_if_flooded(struct delivery_log *log, struct tx *tx, bool *ret_enabled)
{
    struct webhook w;
    bool found = false;
    int64_t waiting = 0;
    enum err e = webhooks_find_num(tx->db, log->webhook, &tx->arena, &found, &w);
    *ret_enabled = e == ERR_OK && found && w.disabled_at < 0;
    if (!*ret_enabled)
        return e;
    e = deliveries_waiting(tx->db, log->webhook, DELIVERIES_WAITING_MAX + 1, &waiting);
    if (e != ERR_OK || waiting <= DELIVERIES_WAITING_MAX)
        return e;
    *ret_enabled = false;
    return webhook_disable(tx, &w, "Too many deliveries are waiting for the receiver");
}

static enum err next_webhook(struct delivery_log *log, struct tx *tx, bool *ret_found)
{
    int64_t kept_from = 0;
    bool deleted = false;
    enum err e = webhooks_next(tx->db, log->webhook, ret_found, &log->webhook, &deleted);
    if (e != ERR_OK || !*ret_found) {
        *log = (struct delivery_log){0};
        return e;
    }
    log->deleted = deleted;
    log->at = 0;
    log->below = (struct deliveries_below){0, 0}; /* nothing, as long as the bounds are not known */
    if (deleted) {
        log->below = (struct deliveries_below){INT64_MAX, INT64_MAX};
        return ERR_OK;
    }
    bool enabled;
    e = stop_if_flooded(log, tx, &enabled);
    if (e != ERR_OK)
        return e;
    e = deliveries_kept_from(tx->db, log->webhook, DELIVERIES_KEPT_MAX, &kept_from);
    if (e != ERR_OK)
        return e;
    /* What still waits may be older than that after a long downtime. It goes only if nobody sends
     * to the webhook. */
    int64_t old = num_of_ms(tx->now_ms - DELIVERY_KEPT_MS);
    log->below.any = enabled ? 0 : old;
    log->below.over = MAX(kept_from, old);
    return ERR_OK;
}

enum err delivery_log_slice(struct delivery_log *log, struct tx *tx, bool *ret_more)
{
    bool found = log->webhook != 0 && !log->skips;
    log->skips = false;
    enum err e = ERR_OK;
    *ret_more = false;
    if (!found)
        e = next_webhook(log, tx, &found);
    if (e != ERR_OK || !found)
        return e;
    int64_t looked = 0;
    e = deliveries_sweep(tx->db, log->webhook, &log->below, DELIVERIES_SWEPT_PER_TURN_MAX, &log->at,
                         &looked);
    if (e != ERR_OK)
        return e;
    if (looked < DELIVERIES_SWEPT_PER_TURN_MAX) {
        if (log->deleted)
            e = webhooks_remove(tx->db, log->webhook);
        if (e == ERR_OK)
            e = next_webhook(log, tx, &found);
    }
    *ret_more = e == ERR_OK && found;
    return e;
}
