/* Where effects go after the commit. */
#include "runtime/publish.h"

#include "base/metrics.h"
#include "core/txn/tenant_labels.h"
#include "outbound/relay.h"
#include "outbound/span_export.h"
#include "outbound/subscriptions.h"
#include "runtime/waiters.h"

#include <errno.h>
#include <unistd.h>

void wake_loop(int event_fd)
{
    uint64_t one = 1;
    ssize_t n = write(event_fd, &one, sizeof(one));
    assert(n == sizeof(one) || errno == EAGAIN); /* full: it is readable already */
}

/* What one walk over the effects has found. */
struct walk {
    const struct receivers *to;
    bool for_waiters, for_subscribers, for_export;
    int64_t events;
};

static void raise_flag(const struct receivers *to, atomic_bool *flag)
{
    if (!atomic_exchange(flag, true))
        wake_loop(to->event_fd);
}

static void count_admission(const struct receivers *to, const struct effect *x)
{
    struct str tenant = tenant_label(to->labels, x->admission.tenant);
    metric_add(to->admissions, tenant, x->admission.outcome, 1);
    if (x->admission.wait_ms >= 0)
        metric_observe(to->admission_wait, tenant, str_of(x->admission.endpoint),
                       (double)x->admission.wait_ms / 1e3);
}

/* No default: a new kind does not compile without a receiver. */
static void hand_out(struct walk *w, const struct effect *x)
{
    switch (x->kind) {
    case EFFECT_JOB_READY:
        w->for_waiters |= !x->ready.leased;
        return;
    case EFFECT_RUN_ENDED:
    case EFFECT_UPDATES_DECIDED:
        w->for_waiters = true;
        return;
    case EFFECT_EVENTS_APPENDED:
        w->for_subscribers = true;
        w->events += x->events.last_seq - x->events.first_seq + 1;
        return;
    case EFFECT_CALLS_READY:
        raise_flag(w->to, w->to->has_calls);
        return;
    case EFFECT_DELIVERIES_READY:
        raise_flag(w->to, w->to->has_deliveries);
        return;
    case EFFECT_KEYS_CHANGED:
        atomic_fetch_add(w->to->auth_epoch, 1);
        return;
    case EFFECT_TIMER_ARMED:
    case EFFECT_RUN_MADE:
        return; /* the core has noted it: core_wants_background(), core/txn/stats */
    case EFFECT_ENTITY_CALL_ENDED:
        metric_add(w->to->entity_calls, str_of(entity_call_end_name(x->call_end)), STR_NONE, 1);
        return;
    case EFFECT_ADMISSION:
        count_admission(w->to, x);
        return;
    case EFFECT_QUEUE_WAIT:
        metric_observe(w->to->queue_waits, tenant_label(w->to->labels, x->admission.tenant),
                       STR_NONE, (double)MAX(x->admission.wait_ms, (int64_t)0) / 1e3);
        return;
    case EFFECT_SPAN:
        w->for_export = true;
        return;
    case EFFECT_COUNT:
        break;
    }
    assert(!"unknown effect");
}

struct effect_parcel *publish_committed(const struct receivers *to, struct effect_parcel *parcel)
{
    struct walk w = {.to = to};
    for (const struct effect *x = parcel->first; x != NULL; x = x->next)
        hand_out(&w, x);
    if (w.events > 0 && to->relay != NULL) {
        atomic_fetch_add(to->unpublished_events, w.events);
        relay_wake(to->relay);
    }
    /* Counted when it is on disk: one that came before gets the effect, one that comes later reads
     * what is committed. */
    if (w.for_export || (w.for_waiters && atomic_load(to->waiting) > 0) ||
        (w.for_subscribers && atomic_load(to->subscribers) > 0))
        return parcel;
    effect_parcel_free(parcel);
    return NULL;
}

void publish_on_loop(struct effect_parcel *first, struct waiters *waiters,
                     struct subscriptions *subscriptions, struct span_export *spans)
{
    while (first != NULL) {
        struct effect_parcel *parcel = first;
        first = parcel->next;
        subscriptions_committed(subscriptions, parcel->first);
        waiters_wake(waiters, parcel->first);
        span_export_committed(spans, parcel->first);
        effect_parcel_free(parcel);
    }
}
