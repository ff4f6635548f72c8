/* Spans of requests. */
#ifndef PAWL_API_TRACING_H
#define PAWL_API_TRACING_H

#include "api/call.h"
#include "base/trace/span.h"

/* Where a request is in a trace: below its caller's span, or the first of a new trace. */
struct trace_span request_span(const struct http_request *req);

#endif
