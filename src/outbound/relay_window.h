/* The next messages for the bus, read from the feed in its order and put into words: events, and
 * offers of the jobs that they make claimable. Bounded; what is over makes room for more.
 *
 * In a run messages go out one after the other: the next is taken when the one before it is over.
 * Runs do not wait for each other. So that a run with a long timeline does not fill the window,
 * only the next RELAY_LANE_MAX of its messages are in words; a stub stands for the rest of a row,
 * and is read when its turn comes. */
#ifndef PAWL_OUTBOUND_RELAY_WINDOW_H
#define PAWL_OUTBOUND_RELAY_WINDOW_H

#include "core/txn/event_json.h"
#include "core/txn/tx.h"

enum {
    RELAY_LANES = 2 * (RELAY_WINDOW_MESSAGES + RELAY_WINDOW_STUBS),
};

struct relay_message {
    struct relay_message *next;
    int64_t feed;
    int64_t seq; /* of a stub: the first that it stands for */
    int64_t last_seq;
    int64_t run;
    int64_t tenant;
    int64_t at; /* when it happened */
    bool stub;
    bool offer;
    bool again;       /* it was parked: the feed has passed it */
    bool over;        /* stored, parked, or of no use any more */
    bool unspeakable; /* its event cannot be put into words */
    struct uuid job;  /* of an event that may make it claimable; all zero: none */
    int64_t attempts; /* that failed while others came through */
    char id[EVENT_MESSAGE_ID_MAX + 1];
    char type[NAME_MAX_LEN + 1];
    struct str subject;
    struct str body;
    char text[]; /* what they point to */
};

/* What the window holds of one run. */
struct relay_lane {
    int64_t run; /* 0: nobody's */
    int64_t messages;
    bool has_stub;
};

struct relay_window {
    const struct str *queues; /* whose jobs are offered */
    size_t queue_count;
    struct relay_message *first, **last;
    size_t count; /* of messages */
    size_t stubs;
    size_t bytes;
    int64_t through; /* every row up to here is in the window or over */
    int64_t missing; /* events that are not kept any more, to be taken off the count */
    struct event_json words;
    struct relay_lane lanes[RELAY_LANES]; /* a hash table, made anew by whoever needs it */
};

/* Begins behind the row `after`. `queues` is borrowed. */
void relay_window_init(struct relay_window *w, int64_t after, const struct str *queues,
                       size_t queue_count);
void relay_window_release(struct relay_window *w);

/* Reads on as far as there is room. Inside a snapshot; `tx` is a reader's. */
MUST_CHECK enum err relay_window_fill(struct relay_window *w, struct read_tx *tx);
/* Takes in parked messages that are to be tried again; those whose event or offer is no more are
 * over at once. */
MUST_CHECK enum err relay_window_fill_parked(struct relay_window *w, struct read_tx *tx);

/* The next messages, at most one of a run, in order. */
size_t relay_window_batch(struct relay_window *w, struct relay_message **ret, size_t max);
/* Drops those that are over. */
void relay_window_clean(struct relay_window *w);
/* Every row up to this one is done with. */
int64_t relay_window_done_through(const struct relay_window *w);
/* When the oldest event in it happened; -1: there is none. */
int64_t relay_window_oldest(const struct relay_window *w);

#endif
