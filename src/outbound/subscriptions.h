/* Event subscriptions. A subscriber follows one run, one entity or a whole tenant. Subscribers that
 * are caught up share a channel (channels.h): it reads new events once per commit and keeps the
 * most recent in a window, from which each subscriber copies at its client's pace. A subscriber
 * that falls out of the window reads from the store until it has caught up.
 *
 *            first read            caught up           out of the window
 *   OPENING ────────────▶ BEHIND ────────────▶ FOLLOWING ────────────▶ BEHIND
 *
 * On the HTTP loop's thread only; readers fill the reads that they are handed. */
#ifndef PAWL_OUTBOUND_SUBSCRIPTIONS_H
#define PAWL_OUTBOUND_SUBSCRIPTIONS_H

#include "outbound/channels.h"

#include <stdatomic.h>

enum subscriber_state { SUBSCRIBER_OPENING, SUBSCRIBER_BEHIND, SUBSCRIBER_FOLLOWING };

struct subscriber {
    /* Set by the caller; text must stay until on_closed(). */
    struct caller caller;
    bool from_now;           /* as read.from_now, which later reads overwrite */
    enum stream_scope scope; /* STREAM_TENANT: everything of the caller's tenant */
    struct uuid owner_id;    /* of the run; an entity's is found by the first read */
    struct str entity_type, entity_id;
    struct stream_read read; /* from and from_now: where it begins */
    struct str types;        /* patterns, separated by commas; empty: all */
    /* subscriber_next() may have more. The first call says that the subscription is open, or was
     * refused (op.err); only in that call may the subscriber be removed. */
    void (*on_event)(struct subscriber *s);
    /* After subscriptions_remove(): it may be freed. */
    void (*on_closed)(struct subscriber *s);

    /* The module's own. */
    struct subscriptions *all;
    enum subscriber_state state;
    struct channel_member member;   /* of the channel that it follows */
    struct subscriber *prev, *next; /* waiting for a turn to read */
    struct stream_event *own;       /* read from the store, not given out yet */
    struct stream_event *current;   /* given out last; in the window while it follows */
    struct stream_position place;   /* read from the store up to here */
    struct op op;
    struct read_stream_input input;
    uint64_t commits_seen; /* rounds of commits when its read began */
    bool reading;          /* the op is under way */
    bool waiting;          /* for a turn to read */
    bool failed;
    bool closed;
};

enum subscriber_next_result { SUBSCRIBER_EVENT, SUBSCRIBER_LATER, SUBSCRIBER_ENDED };

struct subscriptions;

/* NULL: out of memory. */
struct subscriptions *subscriptions_new(const struct env *env, const struct stream_hooks *hooks);
/* Every subscriber must have been removed. */
void subscriptions_free(struct subscriptions *all);
/* How many there are; any thread may read it. */
const atomic_int *subscriptions_count(const struct subscriptions *all);

/* Opens it. The caller owns the subscriber and keeps it where it is until on_closed(). */
void subscriptions_add(struct subscriptions *all, struct subscriber *s);
void subscriptions_remove(struct subscriptions *all, struct subscriber *s);
/* The text of the next event, borrowed until the next call. SUBSCRIBER_LATER: on_event() follows.
 */
enum subscriber_next_result subscriber_next(struct subscriber *s, struct str *ret);

/* The effects of a commit: channels whose timeline has grown read on. */
void subscriptions_committed(struct subscriptions *all, const struct effect *first);
/* Channels that were delayed read now. */
void subscriptions_tick(struct subscriptions *all, int64_t mono_ms);
/* How long until that is due; -1: never. */
int subscriptions_timeout_ms(const struct subscriptions *all, int64_t mono_ms);

#endif
