/* The messages that the relay publishes: events, and offers of the jobs that events make claimable,
 * each with its subject and its body. */
#ifndef PAWL_OUTBOUND_RELAY_MESSAGE_H
#define PAWL_OUTBOUND_RELAY_MESSAGE_H

#include "core/txn/event_json.h"
#include "core/txn/read_tx.h"

struct relay_message {
    struct relay_message *next;
    int64_t feed; /* the row of the feed */
    int64_t seq;  /* of a stub: the first event that it stands for */
    int64_t last_seq;
    int64_t run; /* or the entity */
    int64_t tenant;
    int64_t at; /* when the event happened */
    bool stub;  /* see relay_window.h */
    bool offer;
    bool parked;        /* it was parked before, and its row in the feed is handled */
    bool done;          /* stored, parked, or no longer needed */
    bool unpublishable; /* the event's row is damaged */
    int64_t job;        /* the ordinal of the job that the event makes claimable; -1: none */
    int64_t attempts;   /* that failed while others came through */
    char id[EVENT_MESSAGE_ID_MAX + 1];
    char type[NAME_MAX_LEN + 1];
    struct str subject;
    struct str body;
    char text[]; /* what they point to */
};

/* NULL: out of memory. The caller frees it. */
struct relay_message *relay_message_new(struct str subject, struct str body);

/* The message of an event. One that cannot be published is `unpublishable`; it has the id that it
 * would have had. `json` is scratch. */
MUST_CHECK enum err relay_message_of_event(struct event_json *json,
                                           const struct event_source *source,
                                           const struct event *event, struct relay_message **ret);

/* Queues whose jobs are offered. */
struct offered_queues {
    const struct str *names;
    size_t count;
};

/* The offer of the job that the event makes claimable. NULL in *ret if the job is not claimable now
 * (once it is again, another event says so) or its queue is not offered. Inside a snapshot. */
MUST_CHECK enum err relay_message_of_offer(const struct offered_queues *queues, struct read_tx *tx,
                                           const struct event_source *source,
                                           const struct relay_message *event,
                                           struct relay_message **ret);

#endif
