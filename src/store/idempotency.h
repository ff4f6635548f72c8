/* Idempotency records as rows: (tenant, key) → the first request and its answer.
 *
 * How a key is found is this module's own business: records made a moment ago through the writer's
 * list in memory, older ones through an index that is filled in bulk (late_index.h). */
#ifndef PAWL_STORE_IDEMPOTENCY_H
#define PAWL_STORE_IDEMPOTENCY_H

#include "store/db.h"

struct idem_record {
    int64_t num; /* given by the insert */
    int64_t tenant;
    struct str key;
    int64_t key_hash; /* idem_key_hash() of it, or 0 for computing it */
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
    int64_t expires_at;       /* -1: never */
    int64_t last_replayed_at; /* -1: never */
};

/* The records that the index does not have yet, as the writer knows them. Belongs to its
 * transaction: forget it after a rollback, and it is read again. */
struct idem_recent;
MUST_CHECK struct idem_recent *idem_recent_new(void);
void idem_recent_free(struct idem_recent *recent);
void idem_recent_forget(struct idem_recent *recent);
size_t idem_recent_count(const struct idem_recent *recent);
/* Puts them all into the index. Inside a transaction. */
MUST_CHECK enum err idem_recent_index(struct idem_recent *recent, struct db *db);

/* Text is borrowed for the call. */
typedef void idem_record_each(void *ctx, const struct idem_record *record);

MUST_CHECK enum err idempotency_insert(struct db *db, struct idem_recent *recent,
                                       const struct idem_record *record);
/* Calls `each` once or not at all, whether or not the record has expired. */
MUST_CHECK enum err idempotency_find(struct db *db, struct idem_recent *recent, int64_t tenant,
                                     struct str key, idem_record_each *each, void *ctx);
/* The same for a caller that already has the idem_key_hash() of the key. */
MUST_CHECK enum err idempotency_find_hashed(struct db *db, struct idem_recent *recent,
                                            int64_t tenant, struct str key, int64_t key_hash,
                                            idem_record_each *each, void *ctx);
/* For readers, by the tenant's name: the one look-up that a replay needs. Does not see the writer's
 * most recent. */
MUST_CHECK enum err idempotency_find_named(struct db *db, struct str tenant_id, struct str key,
                                           int64_t key_hash, idem_record_each *each, void *ctx);
MUST_CHECK enum err idempotency_delete(struct db *db, const struct idem_record *record);
MUST_CHECK enum err idempotency_count(struct db *db, int64_t num, int64_t replays,
                                      int64_t mismatches, int64_t at_ms);
/* Removes records that have expired by now_ms, in the order in which they were to expire, at most
 * `limit`. Costs as much as it removes: records that never expire are not in its index. */
MUST_CHECK enum err idempotency_evict(struct db *db, int64_t now_ms, int64_t limit,
                                      int64_t *ret_evicted);

/* For doctor: records that name a run which is not there, and keys with more than one record. */
MUST_CHECK enum err idempotency_orphans(struct db *db, int64_t *ret_checked, int64_t *ret_orphans);
MUST_CHECK enum err idempotency_doubles(struct db *db, int64_t *ret_doubles);

#endif
