/* Events on their way to subscribers. */
#include "core/usecase/stream_event.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int stream_position_cmp(struct stream_position a, struct stream_position b)
{
    if (a.num != b.num)
        return a.num < b.num ? -1 : 1;
    return (a.seq > b.seq) - (a.seq < b.seq);
}

struct stream_event *stream_event_new(struct stream_position at, struct str type, struct str text)
{
    struct stream_event *e = malloc(sizeof(*e) + type.len + text.len);
    if (e == NULL)
        return NULL;
    *e = (struct stream_event){.at = at, .holders = 1};
    if (type.len > 0)
        memcpy(e->bytes, type.ptr, type.len);
    if (text.len > 0)
        memcpy(e->bytes + type.len, text.ptr, text.len);
    e->type = (struct str){e->bytes, type.len};
    e->text = (struct str){e->bytes + type.len, text.len};
    return e;
}

void stream_event_release(struct stream_event *e)
{
    if (e == NULL)
        return;
    assert(e->holders > 0);
    if (--e->holders == 0)
        free(e);
}

void stream_events_release(struct stream_event *first)
{
    while (first != NULL) {
        struct stream_event *next = first->next;
        stream_event_release(first);
        first = next;
    }
}
