/* Events on their way to those who listen: as they are sent, each once in memory however many it
 * goes to. */
#ifndef PAWL_CORE_USECASE_STREAM_EVENT_H
#define PAWL_CORE_USECASE_STREAM_EVENT_H

#include "base/buf.h"
#include "base/env.h"
#include "base/str.h"

#include <stdint.h>

/* A place in what is told: of a tenant the row of the feed and the event in it; of a run or an
 * entity the event alone, with num 0. */
struct stream_position {
    int64_t num;
    int64_t seq; /* INT64_MAX: the whole row */
};

/* < 0, 0, > 0 as a is before, at or behind b. */
int stream_position_cmp(struct stream_position a, struct stream_position b);

struct stream_event {
    struct stream_event *next;
    struct stream_position at;
    int holders;  /* who uses it; freed by the last */
    bool kept;    /* in the window of a channel, and so is `next` */
    bool for_all; /* whatever types are wanted */
    struct str type;
    struct str text; /* "id: …\nevent: …\ndata: …\n\n" */
    char bytes[];
};

/* With one holder. NULL when memory ran out. */
struct stream_event *stream_event_new(struct stream_position at, struct str type, struct str text);
void stream_event_release(struct stream_event *event); /* NULL is fine */
/* All of a list, once each. */
void stream_events_release(struct stream_event *first);

/* One go of reading. The reader of the store has it while the op is under way. */
struct stream_read {
    struct stream_position from; /* in: the last place that was told */
    bool from_now;               /* in: `from` is not set: nothing that is there already is told */
    struct uuid owner_id;        /* out: of the run or the entity that it is about */
    struct stream_event *first;
    struct stream_position through; /* all that is there up to here is in the list */
    bool more;                      /* there is more than was read in this go */
    bool over; /* the run is over, or the entity was deleted, and there is no more */
};

#endif
