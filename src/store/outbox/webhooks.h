/* Webhooks as rows. A deleted one keeps its row until it is swept; only webhooks_next() returns it.
 */
#ifndef PAWL_STORE_OUTBOX_WEBHOOKS_H
#define PAWL_STORE_OUTBOX_WEBHOOKS_H

#include "base/arena.h"
#include "domain/webhook.h"
#include "store/db.h"

struct webhook {
    int64_t num; /* 0: not stored yet */
    struct uuid id;
    int64_t tenant;
    struct str url;
    struct str events;      /* patterns: see type_list_fits() */
    struct str description; /* ptr NULL: none */
    struct webhook_secret secret;
    struct webhook_secret old_secret;
    int64_t old_secret_until; /* -1: there is no old one */
    int64_t failing_since;    /* -1: the last attempt succeeded, or there was none */
    int64_t disabled_at;      /* -1: it is not */
    struct str disabled_reason;
    int64_t feed_from; /* it gets events above this number of the feed */
    struct str created_by;
    int64_t created_at;
    int64_t updated_at;
};

MUST_CHECK enum err webhooks_insert(struct db *db, const struct webhook *w);
/* All that may change. */
MUST_CHECK enum err webhooks_update(struct db *db, const struct webhook *w);
MUST_CHECK enum err webhooks_set_failing(struct db *db, int64_t num, int64_t since);
MUST_CHECK enum err webhooks_delete(struct db *db, int64_t num, int64_t now_ms);
/* How many the tenant has; with tenant 0, how many there are. */
MUST_CHECK enum err webhooks_count(struct db *db, int64_t tenant, int64_t *ret);

/* Text is copied to the arena. */
MUST_CHECK enum err webhooks_find(struct db *db, int64_t tenant, struct uuid id,
                                  struct arena *arena, bool *ret_found, struct webhook *ret);
MUST_CHECK enum err webhooks_find_num(struct db *db, int64_t num, struct arena *arena,
                                      bool *ret_found, struct webhook *ret);
/* Those above `after`, in the order of their numbers. Text is borrowed for the call. */
typedef void webhook_each(void *ctx, const struct webhook *w);
MUST_CHECK enum err webhooks_list(struct db *db, int64_t tenant, int64_t after, int64_t limit,
                                  webhook_each *each, void *ctx);

/* How many there are in each state: `enabled`, `failing`, `disabled`. */
MUST_CHECK enum err webhooks_by_state(struct db *db,
                                      void (*each)(void *ctx, struct str state, int64_t number),
                                      void *ctx);

/* --- sending and sweeping --- */

/* The first above `after`, up to `through`, that is enabled and has a delivery that is due. */
struct webhook_due {
    int64_t num;
    bool failing;
};
MUST_CHECK enum err webhooks_next_due(struct db *db, int64_t after, int64_t through, int64_t now_ms,
                                      bool *ret_found, struct webhook_due *ret);
/* The first above `after`, deleted ones too. */
MUST_CHECK enum err webhooks_next(struct db *db, int64_t after, bool *ret_found, int64_t *ret_num,
                                  bool *ret_deleted);
/* The row of one that was deleted. */
MUST_CHECK enum err webhooks_remove(struct db *db, int64_t num);

#endif
