/* Spans in the JSON encoding of OTLP, the protocol of OpenTelemetry: ids are hexadecimal, 64-bit
 * numbers are text, enumerations are numbers. */
#ifndef PAWL_OUTBOUND_OTLP_H
#define PAWL_OUTBOUND_OTLP_H

#include "base/trace/span.h"

/* Appends one span to a list of them, with the comma before it. */
void otlp_put_span(struct buf *spans, const struct span *span);
/* The body of a POST to /v1/traces with this list. */
void otlp_put_request(struct buf *out, struct str spans);

/* How many spans of a request that was answered with success the collector did not take. */
int64_t otlp_rejected(struct str answer);
/* May the same request succeed later, after an answer with this status? */
bool otlp_status_may_pass(int status);

#endif
