/* Parked messages: the bus refused them. An operator looks at them and may have them retried. */
#ifndef PAWL_STORE_OUTBOX_PARKED_H
#define PAWL_STORE_OUTBOX_PARKED_H

#include "store/db.h"

struct parked {
    int64_t feed; /* with seq and offer: its position among all messages */
    int64_t seq;
    bool offer; /* an offer of the job that the event makes claimable */
    struct str message_id;
    int64_t tenant;
    int64_t owner;   /* the num of the run or entity that the event is about */
    struct str type; /* of the event */
    struct str reason;
    int64_t attempts;
    int64_t at;
    bool again;           /* somebody asked for a retry */
    struct str tenant_id; /* read only */
};

/* Parks it. If it is parked already, the attempts add up. */
MUST_CHECK enum err parked_put(struct db *db, const struct parked *parked);
MUST_CHECK enum err parked_remove(struct db *db, struct str message_id);
/* Asks for a retry. tenant 0: of any tenant. */
MUST_CHECK enum err parked_ask_again(struct db *db, int64_t tenant, struct str message_id,
                                     bool *ret_found);

/* Those after (feed, seq, offer), in the order of the feed. tenant 0: of all tenants. `each`
 * returns false to stop. Text is borrowed. */
typedef bool parked_each(void *ctx, const struct parked *parked);
MUST_CHECK enum err parked_list(struct db *db, int64_t tenant, int64_t feed, int64_t seq,
                                bool offer, int64_t limit, parked_each *each, void *ctx);
/* Those that somebody asked to retry. */
MUST_CHECK enum err parked_again(struct db *db, int64_t limit, parked_each *each, void *ctx);
MUST_CHECK enum err parked_count(struct db *db, int64_t *ret);

#endif
