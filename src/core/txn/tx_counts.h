/* What a transaction counts for the metrics. It shows once the transaction is committed; a rollback
 * drops it, so that what is done again counts once. */
#ifndef PAWL_CORE_TXN_TX_COUNTS_H
#define PAWL_CORE_TXN_TX_COUNTS_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct metric;
struct internal_admission;
struct tenant;
struct tenant_labels;
struct tx;

/* How calls of entities' handlers end. */
#define ENTITY_CALL_ENDS(X)           \
    X(ENTITY_CALL_APPLIED, "applied") \
    X(ENTITY_CALL_FAILED, "failed")   \
    X(ENTITY_CALL_EXPIRED, "expired") \
    X(ENTITY_CALL_STALE, "stale") /* an answer under a lease that is not the current one */

enum entity_call_end {
#define X(symbol, name) symbol,
    ENTITY_CALL_ENDS(X)
#undef X
        ENTITY_CALL_COUNT
};

const char *entity_call_end_name(enum entity_call_end end);

/* Where it is counted; all NULL for readers. */
struct tx_metrics {
    struct metric *entity_calls;
    struct metric *queue_waits; /* how long admitted runs had been queued */
    struct metric *admissions;
    struct metric *admission_wait;
    struct tenant_labels *labels; /* the writer's own */
};

struct tx_counts {
    int64_t call_ends[ENTITY_CALL_COUNT];
    struct internal_admission *admissions; /* in the transaction's notes */
};

void tx_count_call(struct tx *tx, enum entity_call_end end);
/* A run that no request has begun, or a try at one: `endpoint` is who began it, `wait_ms` the time
 * since it was due, -1 where none was begun. */
MUST_CHECK enum err tx_count_admission(struct tx *tx, const struct tenant *t, const char *endpoint,
                                       struct str outcome, int64_t wait_ms);
/* At once: a queued run that was admitted. */
void tx_observe_queue_wait(struct tx *tx, const struct tenant *t, int64_t ms);

/* After the commit. */
void tx_counts_show(struct tx *tx);

#endif
