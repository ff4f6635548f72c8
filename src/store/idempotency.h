/* Idempotency records as rows: (tenant, key) → the first request and its answer.
 *
 * A key is found through an index of hashes (store/key_index), which says where its row may be; the
 * row says whether it is. */
#ifndef PAWL_STORE_IDEMPOTENCY_H
#define PAWL_STORE_IDEMPOTENCY_H

#include "base/arena.h"
#include "store/key_index/key_index.h"

struct idem_record {
    int64_t num; /* given by the insert, or by idem_keys_reserve() */
    int64_t tenant;
    struct str key;
    struct str route;
    struct sha256 fingerprint;
    uint64_t raw_hash; /* 0: of an earlier version, which had another hash */
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

/* The keys as the writer knows them. What a transaction adds counts when it is committed. */
struct idem_keys;
MUST_CHECK struct idem_keys *idem_keys_new(void);
void idem_keys_free(struct idem_keys *keys);
/* Reads the index, and indexes what a file of an earlier version has. Once, by the writer, between
 * transactions. */
MUST_CHECK enum err idem_keys_open(struct idem_keys *keys, struct db *db, const struct env *env);
void idem_keys_commit(struct idem_keys *keys);
/* After a rollback. */
void idem_keys_forget(struct idem_keys *keys);

/* Background work, each in a transaction of its own: KEY_SEGMENT_KEYS new keys are sealed together,
 * and then merged. */
bool idem_keys_work_is_due(const struct idem_keys *keys);
MUST_CHECK enum err idem_keys_work(struct idem_keys *keys, struct db *db);
/* Seals all that are in memory. */
MUST_CHECK enum err idem_keys_seal(struct idem_keys *keys, struct db *db);
/* Makes the index again from the rows, in the transaction. */
MUST_CHECK enum err idem_keys_rebuild(struct idem_keys *keys, struct db *db);
/* For any thread, once the keys are open. */
uint64_t idem_keys_raw_hash(const struct idem_keys *keys, struct str route, struct str body);
/* How many keys are in memory only. */
size_t idem_keys_unsealed(const struct idem_keys *keys);

/* A number for the record that is inserted next. */
int64_t idem_keys_reserve(struct idem_keys *keys);
/* With the number that was reserved for it, or, with 0, a new one. */
MUST_CHECK enum err idempotency_insert(struct db *db, struct idem_keys *keys,
                                       const struct idem_record *record);
/* Finds it whether or not it has expired. Text is copied to the arena. */
MUST_CHECK enum err idempotency_find(struct db *db, struct idem_keys *keys, int64_t tenant,
                                     struct str key, struct arena *arena, bool *ret_found,
                                     struct idem_record *ret);
/* For one other thread, which may miss a record that is there. False: none is known; reads nothing.
 */
bool idempotency_glance(struct idem_keys *keys, int64_t tenant, struct str key,
                        struct key_hints *ret);
/* Looks where the hints say, on a snapshot. */
MUST_CHECK enum err idempotency_follow(struct db *db, struct idem_keys *keys, int64_t tenant,
                                       struct str key, const struct key_hints *hints,
                                       struct arena *arena, bool *ret_found,
                                       struct idem_record *ret);
/* By its number. */
MUST_CHECK enum err idempotency_find_num(struct db *db, int64_t num, struct arena *arena,
                                         bool *ret_found, struct idem_record *ret);
/* Keeps the body from now on, because the run that it could be made from is removed. */
MUST_CHECK enum err idempotency_set_body(struct db *db, int64_t num, struct str body);
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
/* For doctor: keys that the index should have and does not, and what is broken in itself. */
MUST_CHECK enum err idempotency_check_index(struct db *db, int64_t *ret_lost, int64_t *ret_broken);

#endif
