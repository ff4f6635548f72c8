/* A span that is over. */
#include "base/trace/span.h"

#include <assert.h>

static struct span_attribute *next_attribute(struct span *span, const char *name)
{
    assert(span->attribute_count < SPAN_ATTRIBUTES_MAX);
    struct span_attribute *a = &span->attributes[span->attribute_count++];
    *a = (struct span_attribute){.name = name};
    return a;
}

void span_set_times(struct span *span, int64_t begun_ms, int64_t ended_ms)
{
    span->begun_ns = begun_ms * 1000 * 1000;
    span->ended_ns = ended_ms * 1000 * 1000;
}

void span_add_text(struct span *span, const char *name, struct str text)
{
    if (text.ptr != NULL)
        next_attribute(span, name)->text = text;
}

void span_add_number(struct span *span, const char *name, int64_t number)
{
    next_attribute(span, name)->number = number;
}

struct span *span_keep(const struct span *span, struct arena *arena)
{
    struct span *copy = arena_alloc(arena, sizeof(*copy));
    if (copy == NULL)
        return NULL;
    *copy = *span;
    bool ok = arena_keep(arena, &copy->name) && arena_keep(arena, &copy->tracestate) &&
              arena_keep(arena, &copy->message);
    for (size_t i = 0; ok && i < copy->attribute_count; i++)
        ok = arena_keep(arena, &copy->attributes[i].text);
    return ok ? copy : NULL;
}
