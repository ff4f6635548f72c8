/* The next messages for the bus, read from the feed in its order: events, and offers of the jobs
 * that they make claimable. The window is bounded; messages that are done make room for more.
 *
 * Messages of one run are sent one after the other: the next when the one before it is done. Runs
 * do not wait for each other. So that a run with a long timeline does not fill the window, only the
 * next RELAY_LANE_MAX of its messages are in it. A stub stands for the rest of a row, and is read
 * when its turn comes. */
#ifndef PAWL_OUTBOUND_RELAY_WINDOW_H
#define PAWL_OUTBOUND_RELAY_WINDOW_H

#include "outbound/relay_message.h"

enum { RELAY_LANES = 2 * (RELAY_WINDOW_MESSAGES + RELAY_WINDOW_STUBS) };

/* What the window holds of one run or entity. */
struct relay_lane {
    uint64_t round; /* in which it was put; free in every other */
    int64_t run;
    int64_t messages;
    bool has_stub;
};

struct relay_window {
    struct offered_queues queues;
    struct relay_message *first, **last;
    size_t count; /* of messages */
    size_t stubs;
    size_t bytes;
    int64_t through; /* every row up to here is in the window or done */
    int64_t missing; /* events that were removed before they were read */
    int64_t passed;  /* … and that another store has published */
    struct event_json json;
    uint64_t round; /* each function that needs the lanes begins one and fills them */
    struct relay_lane lanes[RELAY_LANES]; /* a hash table */
};

/* Begins after the row `after`. The names of the queues are borrowed. */
void relay_window_init(struct relay_window *w, int64_t after, const struct offered_queues *queues);
void relay_window_release(struct relay_window *w);

/* Reads as far as there is room. Inside a snapshot. */
MUST_CHECK enum err relay_window_fill(struct relay_window *w, struct read_tx *tx);
/* Takes in parked messages that somebody wants retried. Those whose event or offer no longer exists
 * are done at once. Inside a snapshot. */
MUST_CHECK enum err relay_window_fill_parked(struct relay_window *w, struct read_tx *tx);

/* The next messages to send, in order, at most one of each run. */
size_t relay_window_batch(struct relay_window *w, struct relay_message **ret, size_t max);
/* Removes messages that are done. */
void relay_window_clean(struct relay_window *w);
/* Every row up to this one is done. */
int64_t relay_window_done_through(const struct relay_window *w);
/* When the oldest event in it happened; -1: there is none. */
int64_t relay_window_oldest(const struct relay_window *w);

#endif
