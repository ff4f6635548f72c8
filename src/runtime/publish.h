/* Where effects go after the commit (core/txn/effects.h): one place that knows every receiver.
 *
 * Receivers that may be called from any thread get their effects at once, before the ops
 * of the commit are answered. Waiting callers and subscribers live on the HTTP loop's thread: for
 * them the effects travel there as a parcel, together with the ops. */
#ifndef PAWL_RUNTIME_PUBLISH_H
#define PAWL_RUNTIME_PUBLISH_H

#include "core/txn/effects.h"

#include <stdatomic.h>

struct metric;
struct relay;
struct span_export;
struct subscriptions;
struct tenant_labels;
struct waiters;

/* All of them outlive the writer. */
struct receivers {
    int event_fd;                     /* of the HTTP loop; written to wake it */
    const atomic_int *waiting;        /* callers that wait for a job, a run or an update */
    const atomic_int *subscribers;    /* to events */
    atomic_ullong *auth_epoch;        /* raised when an API key changed */
    atomic_bool *has_calls;           /* set when the server has HTTP steps to do */
    atomic_bool *has_deliveries;      /* set when webhooks have something to send */
    struct relay *relay;              /* NULL: there is no bus */
    atomic_llong *unpublished_events; /* events that the bus has not acknowledged */
    struct metric *entity_calls;
    struct metric *queue_waits;
    struct metric *admissions;
    struct metric *admission_wait;
    struct tenant_labels *labels; /* nobody else's */
};

/* Makes the HTTP loop look. From any thread. */
void wake_loop(int event_fd);

/* Once the commit is on disk, in the order of commits, from one thread at a time. Hands out all
 * effects. Takes over the parcel and returns it if the loop has to publish it too; NULL: it need
 * not. */
struct effect_parcel *publish_committed(const struct receivers *to, struct effect_parcel *parcel);

/* The rest, on the HTTP loop's thread, in the order of commits. Takes over the parcels. */
void publish_on_loop(struct effect_parcel *first, struct waiters *waiters,
                     struct subscriptions *subscriptions, struct span_export *spans);

#endif
