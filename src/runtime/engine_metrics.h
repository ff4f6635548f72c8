/* What the engine counts and shows of itself, by name. The families live in the registry; this
 * finds them, and knows what goes into which. Used on the HTTP loop's thread, but for those that
 * the commit loop is given. */
#ifndef PAWL_RUNTIME_ENGINE_METRICS_H
#define PAWL_RUNTIME_ENGINE_METRICS_H

#include "base/metrics.h"
#include "core/txn/op.h"
#include "core/txn/tenant_labels.h"
#include "core/usecase/use_cases.h"
#include "store/db.h"

struct engine_metrics {
    struct metric *admission_wait;
    struct metric *admissions;
    struct metric *replays;
    struct metric *mismatches;
    struct metric *approval_replays;
    struct metric *approval_conflicts;
    struct metric *cleanup_failures;
    struct metric *gate_requests;
    struct metric *gate_releases;
    struct metric *auth_failures;
    struct metric *entity_signals;
    struct metric *entity_calls;
    struct metric *commit_seconds;
    struct metric *reconnects; /* of the store */
    struct metric *in_doubt;
    struct metric *batch_size;
    struct metric *jobs;
    struct metric *outbox_depth;
    struct metric *outbox_lag;
    struct metric *outbox_parked;
    struct metric *log_bytes;
    struct metric *in_flight;
    struct metric *waiting;
    struct metric *subscriptions;
    struct metric *queue_waits;
    struct metric *queued_runs;
    struct metric *queued_limit;
    struct metric *queue_oldest;
    struct metric *slots_held;
    struct metric *slots_limit;
    struct metric *differences;
    struct metric *checked_at;
    struct metric *webhook_attempts;
    struct metric *webhook_depth;
    struct metric *webhooks;
    struct metric *spans_exported;
    struct metric *spans_dropped;

    struct tenant_labels *labels;
    int64_t whole_check[DOCTOR_CHECK_COUNT]; /* what the last whole check found */
};

/* False when memory ran out; release it all the same. */
MUST_CHECK bool engine_metrics_init(struct engine_metrics *m, struct metrics *registry);
void engine_metrics_release(struct engine_metrics *m);

/* An op that was answered. */
void engine_metrics_count(struct engine_metrics *m, const struct op *op, const struct env *env);
/* A check of the data that is over. */
void engine_metrics_checked(struct engine_metrics *m, const struct op *op, int64_t now_ms);

/* Reads the gauges that are in the store and writes all metrics out as text, by a reader. One at a
 * time: gauges are made again by each. */
struct read_metrics_input {
    struct engine_metrics *metrics;
    struct metrics *registry;
    bool renders; /* otherwise only the gauges are read: others follow */
};
extern const struct use_case UC_READ_METRICS;

#endif
