/* Events on their way to those who listen. */
#include "outbound/stream_event.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int told_place_cmp(struct told_place a, struct told_place b)
{
    if (a.num != b.num)
        return a.num < b.num ? -1 : 1;
    return (a.seq > b.seq) - (a.seq < b.seq);
}

struct told_event *told_event_new(struct told_place at, struct str type, struct str text)
{
    struct told_event *e = malloc(sizeof(*e) + type.len + text.len);
    if (e == NULL)
        return NULL;
    *e = (struct told_event){.at = at, .holders = 1};
    if (type.len > 0)
        memcpy(e->bytes, type.ptr, type.len);
    if (text.len > 0)
        memcpy(e->bytes + type.len, text.ptr, text.len);
    e->type = (struct str){e->bytes, type.len};
    e->text = (struct str){e->bytes + type.len, text.len};
    return e;
}

void told_event_drop(struct told_event *e)
{
    if (e == NULL)
        return;
    assert(e->holders > 0);
    if (--e->holders == 0)
        free(e);
}

void told_events_drop(struct told_event *first)
{
    while (first != NULL) {
        struct told_event *next = first->next;
        told_event_drop(first);
        first = next;
    }
}
