/* Events on their way to subscribers, as the text that is sent. An event is in memory once, however
 * many subscribers get it. */
#ifndef PAWL_CORE_USECASE_STREAM_EVENT_H
#define PAWL_CORE_USECASE_STREAM_EVENT_H

#include "base/buf.h"
#include "base/env.h"
#include "base/str.h"

#include <stdint.h>

/* A position in a stream. Of a tenant: the row of the feed and the event in it. Of a run or an
 * entity: the event alone, with num 0. */
struct stream_position {
    int64_t num;
    int64_t seq; /* INT64_MAX: the whole row */
};

/* < 0, 0 or > 0: a is before, at or after b. */
int stream_position_cmp(struct stream_position a, struct stream_position b);

struct stream_event {
    struct stream_event *next;
    struct stream_position at;
    int holders;  /* the last one to release it frees it */
    bool kept;    /* in the window of a channel, and so is `next` */
    bool for_all; /* sent whatever types the subscriber wants */
    struct str type;
    struct str text; /* "id: …\nevent: …\ndata: …\n\n" */
    char bytes[];
};

/* With one holder. NULL: out of memory. */
struct stream_event *stream_event_new(struct stream_position at, struct str type, struct str text);
void stream_event_release(struct stream_event *event); /* NULL is fine */
/* Each of a list. */
void stream_events_release(struct stream_event *first);

/* One read. It belongs to the reader thread while the op is under way. */
struct stream_read {
    struct stream_position from; /* in: the position of the last event that was sent */
    bool from_now;               /* in: begin at the end; `from` is not set */
    bool from_client;            /* in: `from` is a position, not the number of a row */
    int64_t shift;               /* out: a row of the feed minus this is a position */
    struct uuid owner_id;        /* out: of the run or the entity */
    struct stream_event *first;
    struct stream_position through; /* every event up to here is in the list */
    bool more;                      /* there is more to read at once */
    bool over; /* the run has ended or the entity was deleted, and nothing follows */
};

#endif
