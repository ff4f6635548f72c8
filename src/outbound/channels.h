/* Channels: one for each run, entity or tenant that subscribers follow. A channel reads new events
 * once per round of commits, for all of its members, and keeps the most recent ones in a window.
 * Each member walks through the window at the pace of its client.
 *
 * A round of commits only makes channels read: no event is lost if rounds are reported in another
 * order, or some not at all, as long as another one follows.
 *
 * On the HTTP loop's thread only. */
#ifndef PAWL_OUTBOUND_CHANNELS_H
#define PAWL_OUTBOUND_CHANNELS_H

#include "base/limits.h"
#include "core/txn/effects.h"
#include "core/usecase/stream_event.h"
#include "core/usecase/use_cases.h"

enum { CHANNEL_SLOTS = 4096 };

/* What a channel or a subscriber follows. Runs and entities share one sequence of numbers. */
enum stream_scope { STREAM_TENANT, STREAM_RUN, STREAM_ENTITY };

const struct use_case *stream_use_case(enum stream_scope scope);

struct stream_hooks {
    void *ctx;
    void (*read)(void *ctx, struct op *op); /* has a reader run it; op->done() follows */
};

/* One follower of a channel; part of a subscriber. */
struct channel_member {
    struct channel *channel; /* NULL: none */
    struct channel_member *prev, *next;
    /* The channel has new events, has ended or has failed. */
    void (*on_news)(struct channel_member *member);
};

struct channels {
    const struct env *env;
    struct stream_hooks hooks;
    uint64_t commits_seen; /* rounds of commits so far */
    struct channel *slots[CHANNEL_SLOTS];
    struct channel *delayed; /* they read when their next_at_ms has come */
    struct channel *noted;   /* they have news of the round under way */
    /* Every row of the feed above `reported_after` up to `reported` was reported to the channels of
     * its tenant. */
    int64_t reported_after, reported;
};

struct channel {
    struct channels *all;
    struct channel *prev, *next; /* in its slot */
    enum stream_scope scope;
    int64_t number; /* of the run, the entity or the tenant; 0: the tenant is not stored yet */
    struct uuid owner_id;
    char tenant[TENANT_ID_MAX + 2];
    struct channel_member *first;
    int64_t count;

    /* The window. It is never empty, so that a member always has a position in it. */
    struct stream_event *oldest, *newest;
    size_t bytes;
    bool over; /* the run has ended or the entity was deleted, and all was read */
    bool failed;

    struct stream_read read;
    struct op op;
    struct read_stream_input input;
    struct stream_position through; /* read up to here */
    bool reading;
    bool caught_up;    /* the last read came to the end */
    bool news;         /* commits have added events since the read began */
    int64_t news_from; /* the lowest row of the feed that did; 0: not known */
    bool noted;        /* in channels->noted */
    struct channel *noted_next;
    bool delayed; /* in channels->delayed */
    struct channel *delayed_next;
    int64_t next_at_ms; /* reads not before this time */
};

/* What identifies a channel. */
struct channel_key {
    enum stream_scope scope;
    int64_t number;       /* as in struct channel */
    struct uuid owner_id; /* of a run or an entity */
    struct str tenant;
    bool creates_tenant; /* as in struct caller */
};

/* The channel for this key, or a new one that begins at `place`. A new one has news at once if
 * commits may have been missed (`stale`). NULL: out of memory. */
struct channel *channel_for(struct channels *all, const struct channel_key *key,
                            struct stream_position place, bool stale);
/* A channel that has news reads at once. */
void channel_join(struct channel *c, struct channel_member *member);
/* A channel without members is freed. */
void channel_leave(struct channel_member *member);

/* The effects of a commit: channels whose timeline has grown read on. */
void channels_committed(struct channels *all, const struct effect *first);
/* Delayed channels whose time has come read. */
void channels_tick(struct channels *all, int64_t mono_ms);
/* How long until that; -1: none is delayed. */
int channels_timeout_ms(const struct channels *all, int64_t mono_ms);

#endif
