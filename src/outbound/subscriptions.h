/* Who listens to events, of one run, one entity or a whole tenant, and what each is told.
 *
 * What comes is read once for all who listen to the same thing and have come as far: a channel
 * reads on when a commit has added to it, and keeps the newest events in a window. Listeners take
 * them from there one by one, as fast as their clients do; nobody has a queue of its own. One that
 * is behind the window, because it has just come or takes slowly, reads by itself until it has
 * caught up.
 *
 *            first read            all read            out of the window
 *   OPENING ────────────▶ BEHIND ────────────▶ FOLLOWING ────────────▶ BEHIND
 *
 * On the loop's thread only; readers fill what they are handed. */
#ifndef PAWL_OUTBOUND_SUBSCRIPTIONS_H
#define PAWL_OUTBOUND_SUBSCRIPTIONS_H

#include "core/txn/op.h"
#include "core/txn/tx.h"
#include "core/usecase/stream_event.h"
#include "core/usecase/use_cases.h"

#include <stdatomic.h>

struct channel;

/* What is listened to. Runs and entities have their numbers in one row. */
enum stream_scope { STREAM_TENANT, STREAM_RUN, STREAM_ENTITY };

enum subscriber_state { SUBSCRIBER_OPENING, SUBSCRIBER_BEHIND, SUBSCRIBER_FOLLOWING };

struct subscriber {
    /* Set by the caller; text stays until left(). */
    struct caller caller;
    bool from_now;           /* as read.from_now, which is forgotten */
    enum stream_scope about; /* STREAM_TENANT: all that the caller's tenant has */
    struct uuid owner_id;    /* the run; the entity's is found by the first read */
    struct str entity_type, entity_id;
    struct stream_read read; /* from and from_now: where it begins */
    struct str types;        /* patterns with commas between them; empty: all */
    /* It may have more to say; the first time it has been opened, or refused (op.err). Only then
     * may it be removed from within. */
    void (*on_event)(struct subscriber *l);
    /* After subscriptions_remove(): it may be freed. */
    void (*on_closed)(struct subscriber *l);

    /* The module's. */
    struct subscriptions *all;
    enum subscriber_state state;
    struct subscriber *prev, *next; /* in its channel, or waiting for its turn to read */
    struct channel *channel;        /* that it follows */
    struct stream_event *own;       /* read by itself, not said yet */
    struct stream_event *current;   /* said last; in a window while it follows */
    struct stream_position place;   /* up to which it has read by itself */
    struct op op;
    struct read_stream_input input;
    uint64_t commits_seen; /* rounds of commits told of when its read began */
    bool reading;          /* the op is under way */
    bool waiting;          /* for its turn to read */
    bool failed;
    bool closed;
};

enum subscriber_next_result { SUBSCRIBER_EVENT, SUBSCRIBER_LATER, SUBSCRIBER_ENDED };

struct subscriptions;

struct subscriptions_hooks {
    void *ctx;
    void (*read)(void *ctx, struct op *op); /* op->done() follows */
};

/* NULL when memory ran out. */
struct subscriptions *subscriptions_new(const struct env *env,
                                        const struct subscriptions_hooks *hooks);
/* All have been removed. */
void subscriptions_free(struct subscriptions *ls);
/* How many there are, for the writer too. */
const atomic_int *subscriptions_count(const struct subscriptions *ls);

/* Opens it. The subscriber is the caller's, and stays where it is until left(). */
void subscriptions_add(struct subscriptions *ls, struct subscriber *l);
void subscriptions_remove(struct subscriptions *ls, struct subscriber *l);
/* What it says next, borrowed until the next call. SUBSCRIBER_LATER: told() follows. */
enum subscriber_next_result subscriber_next(struct subscriber *l, struct str *ret);

/* What commits have added to timelines, among other wakes. It only makes channels look again: no
 * event is lost if wakes come in another order, or some not at all, as long as another follows. */
void subscriptions_committed(struct subscriptions *ls, const struct wake *wakes);
/* Nobody knows what commits have added to. */
void subscriptions_commits_lost(struct subscriptions *ls);
/* Channels that were told too often too fast read now. */
void subscriptions_tick(struct subscriptions *ls, int64_t mono_ms);
/* When that is due; -1: never. */
int subscriptions_timeout_ms(const struct subscriptions *ls, int64_t mono_ms);

#endif
