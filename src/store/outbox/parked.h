/* Messages that the bus will never take as they are, put aside for a person to look at. */
#ifndef PAWL_STORE_OUTBOX_PARKED_H
#define PAWL_STORE_OUTBOX_PARKED_H

#include "store/db.h"

struct parked {
    int64_t feed; /* with seq and offer: its place in the order of all messages */
    int64_t seq;
    bool offer; /* of the job that the event tells of, to workers */
    struct str message_id;
    int64_t tenant;
    int64_t run;
    struct str type; /* of the event */
    struct str reason;
    int64_t attempts; /* so often was it tried */
    int64_t at;
    bool again;           /* somebody asked for another try */
    struct str tenant_id; /* read only */
};

/* Puts it aside, or aside again: then the attempts add up. */
MUST_CHECK enum err parked_put(struct db *db, const struct parked *parked);
MUST_CHECK enum err parked_remove(struct db *db, struct str message_id);
/* Has it tried again. tenant 0: whosever it is. */
MUST_CHECK enum err parked_ask_again(struct db *db, int64_t tenant, struct str message_id,
                                     bool *ret_found);

/* Those behind (feed, seq, offer), in the order of the feed. tenant 0: everybody's. `each` returns
 * false to stop. Text is borrowed. */
typedef bool parked_each(void *ctx, const struct parked *parked);
MUST_CHECK enum err parked_list(struct db *db, int64_t tenant, int64_t feed, int64_t seq,
                                bool offer, int64_t limit, parked_each *each, void *ctx);
/* Those that are to be tried again. */
MUST_CHECK enum err parked_again(struct db *db, int64_t limit, parked_each *each, void *ctx);
MUST_CHECK enum err parked_count(struct db *db, int64_t *ret);

#endif
