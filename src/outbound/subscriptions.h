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
#include "core/usecase/use_cases.h"
#include "outbound/stream_event.h"

#include <stdatomic.h>

struct channel;

/* What is listened to. Runs and entities have their numbers in one row. */
enum told_about { TOLD_TENANT, TOLD_RUN, TOLD_ENTITY };

enum listener_state { LISTENER_OPENING, LISTENER_BEHIND, LISTENER_FOLLOWING };

struct listener {
    /* Set by the caller; text stays until left(). */
    struct caller caller;
    bool begins_now;       /* as read.from_now, which is forgotten */
    enum told_about about; /* TOLD_TENANT: all that the caller's tenant has */
    struct uuid owner_id;  /* the run; the entity's is found by the first read */
    struct str entity_type, entity_id;
    struct told_read read; /* from and from_now: where it begins */
    struct str types;      /* patterns with commas between them; empty: all */
    /* It may have more to say; the first time it has been opened, or refused (op.err). Only then
     * may it be removed from within. */
    void (*told)(struct listener *l);
    /* After listeners_remove(): it may be freed. */
    void (*left)(struct listener *l);

    /* The module's. */
    struct listeners *all;
    enum listener_state state;
    struct listener *prev, *next; /* in its channel, or waiting for its turn to read */
    struct channel *channel;      /* that it follows */
    struct told_event *own;       /* read by itself, not said yet */
    struct told_event *current;   /* said last; in a window while it follows */
    struct told_place place;      /* up to which it has read by itself */
    struct op op;
    struct read_told_input input;
    uint64_t heard; /* rounds of commits told of when its read began */
    bool reading;   /* the op is under way */
    bool waiting;   /* for its turn to read */
    bool failed;
    bool gone;
};

enum listener_says { LISTENER_SAYS, LISTENER_LATER, LISTENER_OVER };

struct listeners;

struct listeners_hooks {
    void *ctx;
    void (*read)(void *ctx, struct op *op); /* op->done() follows */
};

/* NULL when memory ran out. */
struct listeners *listeners_new(const struct env *env, const struct listeners_hooks *hooks);
/* All have been removed. */
void listeners_free(struct listeners *ls);
/* How many there are, for the writer too. */
const atomic_int *listeners_count(const struct listeners *ls);

/* Opens it. The listener is the caller's, and stays where it is until left(). */
void listeners_add(struct listeners *ls, struct listener *l);
void listeners_remove(struct listeners *ls, struct listener *l);
/* What it says next, borrowed until the next call. LISTENER_LATER: told() follows. */
enum listener_says listener_next(struct listener *l, struct str *ret);

/* What commits have added to timelines, among other wakes. It only makes channels look again: no
 * event is lost if wakes come in another order, or some not at all, as long as another follows. */
void listeners_tell(struct listeners *ls, const struct wake *wakes);
/* Nobody knows what commits have added to. */
void listeners_tell_all(struct listeners *ls);
/* Channels that were told too often too fast read now. */
void listeners_tick(struct listeners *ls, int64_t mono_ms);
/* When that is due; -1: never. */
int listeners_timeout_ms(const struct listeners *ls, int64_t mono_ms);

#endif
