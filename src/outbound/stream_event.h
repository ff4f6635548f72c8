/* Events on their way to those who listen: as they are sent, each once in memory however many it
 * goes to. */
#ifndef PAWL_OUTBOUND_STREAM_EVENT_H
#define PAWL_OUTBOUND_STREAM_EVENT_H

#include "base/buf.h"
#include "base/env.h"
#include "base/str.h"

#include <stdint.h>

/* A place in what is told: of a tenant the row of the feed and the event in it; of a run or an
 * entity the event alone, with num 0. */
struct told_place {
    int64_t num;
    int64_t seq; /* INT64_MAX: the whole row */
};

/* < 0, 0, > 0 as a is before, at or behind b. */
int told_place_cmp(struct told_place a, struct told_place b);

struct told_event {
    struct told_event *next;
    struct told_place at;
    int holders;  /* who uses it; freed by the last */
    bool kept;    /* in the window of a channel, and so is `next` */
    bool for_all; /* whatever types are wanted */
    struct str type;
    struct str text; /* "id: …\nevent: …\ndata: …\n\n" */
    char bytes[];
};

/* With one holder. NULL when memory ran out. */
struct told_event *told_event_new(struct told_place at, struct str type, struct str text);
void told_event_drop(struct told_event *event); /* NULL is fine */
/* All of a list, once each. */
void told_events_drop(struct told_event *first);

/* One go of reading. The reader of the store has it while the op is under way. */
struct told_read {
    struct told_place from; /* in: the last place that was told */
    bool from_now;          /* in: `from` is not set: nothing that is there already is told */
    struct uuid owner_id;   /* out: of the run or the entity that it is about */
    struct told_event *first;
    struct told_place through; /* all that is there up to here is in the list */
    bool more;                 /* there is more than was read in this go */
    bool over; /* the run is over, or the entity was deleted, and there is no more */
};

#endif
