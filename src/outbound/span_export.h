/* Exports spans to an OpenTelemetry collector: OTLP over HTTP, JSON encoding (otlp.h).
 *
 *   span_export_add() ──▶ batches, at most SPAN_BATCHES_MAX ──▶ bus/http_caller ──▶ POST /v1/traces
 *
 * One batch is sent at a time: when it is full, or its oldest span is SPAN_BATCH_DELAY_MS old. A
 * batch that the collector may take later is sent again, with a growing delay, at most
 * SPAN_ATTEMPTS_MAX times. What does not fit and what the collector does not take is dropped and
 * counted; nothing else in the server waits for a collector or notices that it is away.
 *
 * On the HTTP loop's thread only; the calls are made on the caller's thread. All functions but
 * span_export_new() accept NULL: spans are not exported. */
#ifndef PAWL_OUTBOUND_SPAN_EXPORT_H
#define PAWL_OUTBOUND_SPAN_EXPORT_H

#include "base/metrics.h"
#include "base/trace/span.h"
#include "core/txn/effects.h"

struct span_export;

struct span_export_config {
    struct str url; /* of the collector, without /v1/traces; copied */
    const struct env *env;
    int event_fd; /* written when span_export_collect() has something to do */
    struct metric *exported;
    struct metric *dropped; /* by reason */
};

/* NULL: out of memory. */
MUST_CHECK struct span_export *span_export_new(const struct span_export_config *config);
void span_export_free(struct span_export *x);

/* Takes a copy, or drops it. */
void span_export_add(struct span_export *x, const struct span *span);
/* The spans among the effects of a commit. */
void span_export_committed(struct span_export *x, const struct effect *first);

/* Takes the collector's answer. */
void span_export_collect(struct span_export *x);
/* Sends what is due. */
void span_export_tick(struct span_export *x, int64_t mono_ms);

/* Sends everything now. What is left after SPAN_DRAIN_MS is dropped. */
void span_export_drain(struct span_export *x, int64_t mono_ms);
/* Nothing waits to be sent. */
bool span_export_idle(const struct span_export *x);

#endif
