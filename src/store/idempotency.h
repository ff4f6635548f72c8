/* Idempotency records as rows: (tenant, key) → the first request and its answer.
 * How a key is found is this module's own business: a unique index today. */
#ifndef PAWL_STORE_IDEMPOTENCY_H
#define PAWL_STORE_IDEMPOTENCY_H

#include "store/db.h"

struct idem_record {
    int64_t num; /* a tenant_next_row(): the order of arrival within the tenant */
    int64_t tenant;
    struct str key;
    struct str route;
    struct sha256 fingerprint;
    struct sha256 raw_hash;
    bool has_run;
    struct uuid run_id;
    int status;
    bool says_created; /* the answer has a member `created`, true the first time only */
    struct str body;
    int64_t replays;
    int64_t mismatches;
    int64_t created_at;
    int64_t last_replayed_at; /* -1: never */
};

/* Text is borrowed for the call. */
typedef void idem_record_each(void *ctx, const struct idem_record *record);

MUST_CHECK enum err idempotency_insert(struct db *db, const struct idem_record *record);
/* Calls `each` once or not at all, whether or not the record has expired. */
MUST_CHECK enum err idempotency_find(struct db *db, int64_t tenant, struct str key,
                                     idem_record_each *each, void *ctx);
/* The same by the tenant's name, giving its retention too (-1: for ever): the one look-up that a replay needs. */
typedef void idem_hit_each(void *ctx, const struct idem_record *record, int64_t retention_ms);
MUST_CHECK enum err idempotency_find_live(struct db *db, struct str tenant_id, struct str key,
                                          idem_hit_each *each, void *ctx);
MUST_CHECK enum err idempotency_delete(struct db *db, int64_t num);
MUST_CHECK enum err idempotency_count(struct db *db, int64_t num, int64_t replays,
                                      int64_t mismatches, int64_t at_ms);
/* Removes the tenant's oldest records made before `before_ms`, at most `limit`, oldest first. */
MUST_CHECK enum err idempotency_evict(struct db *db, int64_t tenant, int64_t before_ms,
                                      int64_t limit, int64_t *ret_evicted);

/* For doctor: records that name a run which is not there. */
MUST_CHECK enum err idempotency_orphans(struct db *db, int64_t *ret_checked, int64_t *ret_orphans);

#endif
