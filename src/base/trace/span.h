/* A span that is over, ready to be exported: one operation of a trace with its times and what is
 * known of it. Text is borrowed. */
#ifndef PAWL_BASE_SPAN_H
#define PAWL_BASE_SPAN_H

#include "base/arena.h"
#include "base/trace/trace.h"

/* The numbers are those of OTLP. */
enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2, SPAN_CLIENT = 3 };

enum { SPAN_ATTRIBUTES_MAX = 8 };

struct span_attribute {
    const char *name; /* a literal */
    struct str text;  /* ptr NULL: it is a number */
    int64_t number;
};

struct span {
    struct trace_span place;
    enum span_kind kind;
    struct str name;
    struct str tracestate; /* ptr NULL: none */
    int64_t begun_ns;      /* since 1970 UTC */
    int64_t ended_ns;
    bool failed;
    struct str message; /* why it failed; ptr NULL: not known */
    struct span_attribute attributes[SPAN_ATTRIBUTES_MAX];
    size_t attribute_count;
};

/* Milliseconds since 1970 UTC. */
void span_set_times(struct span *span, int64_t begun_ms, int64_t ended_ms);
/* Nothing is added when the text's ptr is NULL. */
void span_add_text(struct span *span, const char *name, struct str text);
void span_add_number(struct span *span, const char *name, int64_t number);

/* A copy with all its text in the arena; NULL: out of memory. */
MUST_CHECK struct span *span_keep(const struct span *span, struct arena *arena);

#endif
