/* Server-sent events: a parser that takes a stream in any pieces. */
#ifndef PAWL_SSE_H
#define PAWL_SSE_H

#include "util.h"

/* One event as the stream carries it. `id` is NULL before the first. Lent until the callback
 * returns. */
struct sse_event {
    const char *id, *event, *data;
};

/* False: no more events are wanted. */
typedef bool sse_fn(const struct sse_event *event, void *user);

struct sse {
    struct buffer line, event, data, id;
    char *last_id; /* where to resume; NULL at first */
    bool has_data, has_id, after_cr, begun;
};

/* Begins after this id, or NULL. */
void sse_begin(struct sse *sse, const char *last_id);
void sse_end(struct sse *sse);

/* Hands on the events that are complete. False if `each` returned it. */
bool sse_feed(struct sse *sse, const char *bytes, size_t size, sse_fn *each, void *user);

#endif
