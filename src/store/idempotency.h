/* Idempotency records as rows: (tenant, key) → the first request and its answer.
 *
 * The record of a key that has started a run is in the run's row, if it never expires and its
 * answer can be made from the run (docs/adr/043). All others are in key_records. A key is found
 * through an index of hashes (store/idem_keys.h), which says where its row may be; the row says
 * whether it is. */
#ifndef PAWL_STORE_IDEMPOTENCY_H
#define PAWL_STORE_IDEMPOTENCY_H

#include "base/arena.h"
#include "store/idem_keys.h"

struct idem_record {
    int64_t num; /* given by the insert, or by idem_keys_reserve(); minus the run's, in its row */
    int64_t tenant;
    struct str key;
    struct str route;
    struct sha256 fingerprint;
    uint64_t raw_hash; /* one of an earlier version matches no request; 0: there is none */
    bool has_run;
    struct uuid run_id;
    int status;
    bool says_created; /* the answer has a member `created`, true the first time only */
    struct str body;
    struct str born; /* in place of the body, see core/run/run_birth.h; ptr NULL: none */
    int64_t replays;
    int64_t mismatches;
    int64_t created_at;
    int64_t expires_at;       /* -1: never */
    int64_t last_replayed_at; /* -1: never */
};

/* Into key_records, with the number that was reserved for it, or, with 0, a new one. */
MUST_CHECK enum err idempotency_insert(struct db *db, struct idem_keys *keys,
                                       const struct idem_record *record);
/* Finds it whether or not it has expired. Text is copied to the arena. */
MUST_CHECK enum err idempotency_find(struct db *db, struct idem_keys *keys, int64_t tenant,
                                     struct str key, struct arena *arena, bool *ret_found,
                                     struct idem_record *ret);
/* The same by hints of idem_keys_glance(), on a snapshot. */
MUST_CHECK enum err idempotency_follow(struct db *db, struct idem_keys *keys, int64_t tenant,
                                       struct str key, const struct key_hints *hints,
                                       struct arena *arena, bool *ret_found,
                                       struct idem_record *ret);
/* Of the run that was started with it: in its row, or named there. */
MUST_CHECK enum err idempotency_of_run(struct db *db, int64_t run, struct arena *arena,
                                       bool *ret_found, struct idem_record *ret);
/* Keeps the body from now on, in key_records, because the run that it could be made from is
 * removed. */
MUST_CHECK enum err idempotency_keep_body(struct db *db, struct idem_keys *keys,
                                          const struct idem_record *record, struct str body);
MUST_CHECK enum err idempotency_delete(struct db *db, int64_t num);
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
