/* W3C trace context: the headers traceparent and tracestate, and a place in a trace. Text that
 * breaks a rule of the specification is no trace context: it is ignored, and never repaired. */
#ifndef PAWL_BASE_TRACE_H
#define PAWL_BASE_TRACE_H

#include "base/env.h"

enum {
    TRACEPARENT_LEN = 55, /* of version 00; later ones may add parts after it */
    TRACE_ID_AT = 3,      /* where the trace's id is in a valid one */
    TRACE_ID_LEN = 32,
    SPAN_ID_LEN = 16,
    TRACESTATE_MEMBERS_MAX = 32,
};

/* Flags. All others are set to zero on the way out. */
enum {
    TRACE_SAMPLED = 1, /* the caller may have recorded its part of the trace */
    TRACE_RANDOM = 2,  /* the last seven bytes of the trace's id are random */
};

/* Can the trace be continued? Later versions than 00 may have more parts. */
bool traceparent_ok(struct str text);
/* Is it a list of 1 to 32 members `key=value`? Empty members are allowed and not counted. */
bool tracestate_ok(struct str text);

/* The bytes of a trace's id of 32 lower-case hexadecimal digits. */
struct uuid trace_id_of(const char *digits);

/* One span: an operation of a trace. */
struct trace_span {
    unsigned char trace[16];
    uint64_t id;     /* never 0 */
    uint64_t parent; /* 0: it is the first of its trace */
    unsigned char flags;
};

/* The span `id` below the one that `traceparent` names. If that is not valid (ptr NULL: there is
 * none), the span begins a trace of its own, which is sampled and has `own_trace` as its id. */
struct trace_span trace_span_below(struct str traceparent, struct uuid own_trace, uint64_t id);
/* A span below this one, in the same trace. */
struct trace_span trace_span_child(const struct trace_span *parent, uint64_t id);
/* The id of a span that is known by an id and a number: always the same, so that it need not be
 * stored. Never 0. */
uint64_t trace_span_id(struct uuid of, int64_t number);

/* The header traceparent for what happens below the span; NUL-terminated. */
void trace_write(const struct trace_span *span, char out[static TRACEPARENT_LEN + 1]);
/* Lower-case hexadecimal; NUL-terminated. */
void trace_write_id(const struct trace_span *span, char out[static TRACE_ID_LEN + 1]);
void trace_write_span_id(uint64_t id, char out[static SPAN_ID_LEN + 1]);

#endif
