/* The header traceparent of W3C trace context. */
#ifndef PAWL_HTTP_TRACEPARENT_H
#define PAWL_HTTP_TRACEPARENT_H

#include "base/str.h"

enum { TRACE_ID_AT = 3, TRACE_ID_LEN = 32 }; /* where the trace's id is in a valid one */

/* Can the trace be continued? Later versions than 00 may have more parts. */
bool traceparent_ok(struct str text);

#endif
