/* The index of idempotency keys: from the hash of a tenant's key to the number of the row that may
 * have it (store/key_index), kept in step with the rows. The number of a record, or minus the
 * number of a run that has its key in its own row. */
#ifndef PAWL_STORE_IDEM_KEYS_H
#define PAWL_STORE_IDEM_KEYS_H

#include "base/env.h"
#include "store/key_index/key_index.h"

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
/* Every new run, with a key or not, with the length of its row: the next start reads on from the
 * last one that was sealed. */
void idem_keys_saw_run(struct idem_keys *keys, int64_t run, size_t bytes);
/* Adds the key of a row with this number, which may go some day. */
MUST_CHECK enum err idem_keys_add(struct idem_keys *keys, int64_t tenant, struct str key,
                                  int64_t num, bool may_go);

/* --- looking for a row --- */

/* The number of the row that the index leads to. */
int64_t idem_ref_num(uint64_t ref);
/* `try` says whether the row is the key's. */
MUST_CHECK enum err idem_keys_find(struct idem_keys *keys, struct db *db, int64_t tenant,
                                   struct str key, key_try *try, void *ctx, bool *ret_found);
/* For other threads, which may miss a key that is there. False: none is known; reads nothing. */
bool idem_keys_glance(struct idem_keys *keys, int64_t tenant, struct str key,
                      struct key_hints *ret);
/* Looks where the hints say, on a snapshot. */
MUST_CHECK enum err idem_keys_follow(struct idem_keys *keys, struct db *db,
                                     const struct key_hints *hints, key_try *try, void *ctx,
                                     bool *ret_found);

/* For doctor: keys that the index should have and does not, and what is broken in itself. */
MUST_CHECK enum err idem_keys_check(struct db *db, int64_t *ret_lost, int64_t *ret_broken);

#endif
