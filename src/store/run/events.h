/* Timelines of runs and entities as rows. What one operation tells of an owner is one row: its
 * events are packed into a text, in the order of their numbers.
 *
 *     run   seq  at  type  data
 *     4711  3    …   ''    [["run.created",{…}],["run.started"],["job.created",{…},1]]
 *
 * The first row of a run is part of the run's own (docs/adr/044); the view `timeline_rows` has all.
 * `seq` is the number of the last event in the row. An item has the event's type, its data, its job
 * and its published_as; those at the end that are absent are left out. Rows of earlier versions
 * hold one event in columns of their own, and have its type in `type`. The view `events` shows both
 * kinds event by event: to people who open the file, to the doctor and to tests. */
#ifndef PAWL_STORE_RUN_EVENTS_H
#define PAWL_STORE_RUN_EVENTS_H

#include "base/arena.h"
#include "store/db.h"

struct event {
    int64_t seq; /* 1, 2, 3 … within the owner */
    int64_t at;
    struct str type;
    struct str data; /* JSON object, or ptr NULL */
    /* For readers of the feed, by the flags of its type (domain/timeline.h). */
    int64_t job;             /* EVENT_OFFERS_JOB: the job's ordinal; -1: none */
    struct str published_as; /* EVENT_NAMED_BY_JOB: the job's id; EVENT_NAMED_BY_USER: the type */
};

/* --- packing; pure --- */

/* Adds the event to a text that is empty or was made by this function. Its type and its
 * published_as have no character that JSON escapes. */
void event_pack(struct buf *out, const struct event *event);
/* Ends the text. */
void event_pack_end(struct buf *out);

typedef bool event_unpacked(void *ctx, const struct event *event);
/* Calls `each` for the events of a text, until it returns false; seq is 1, 2, 3 …, and `at` is not
 * set. Returns their number, or 0 when the text is not one that event_pack() makes: `each` may then
 * have been called for some. */
size_t event_unpack(struct str text, event_unpacked *each, void *ctx);

/* --- rows --- */

/* Events whose last one has the number `last_seq`, packed and ended. */
MUST_CHECK enum err events_append(struct db *db, int64_t owner, int64_t last_seq, int64_t at,
                                  struct str packed);
/* The newest of this type; text is copied to the arena. */
MUST_CHECK enum err events_newest(struct db *db, int64_t owner, struct str type,
                                  struct arena *arena, bool *ret_found, struct event *ret);
typedef void event_each(void *ctx, const struct event *event);
/* Up to `limit` of those after the number `after`, in order; none if it is zero or less, as when
 * `after` came from a client that is ahead. Text is borrowed. */
MUST_CHECK enum err events_list(struct db *db, int64_t owner, int64_t after, int64_t limit,
                                event_each *each, void *ctx);
/* The number of the first event that is still there; 0: there is none. */
MUST_CHECK enum err events_first(struct db *db, int64_t owner, int64_t *ret_seq);

#endif
