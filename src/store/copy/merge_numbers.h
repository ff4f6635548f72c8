/* The numbers of rows in several shards, which one store must be able to keep. */
#ifndef PAWL_STORE_COPY_MERGE_NUMBERS_H
#define PAWL_STORE_COPY_MERGE_NUMBERS_H

#include "store/copy/merge_tenants.h"

/* Refused: two shards have different rows with one number, which only an earlier version gave.
 * *ret_highest: no number above it was given, but for those that are made of the time. Reads the
 * numbers of all rows that have one. */
MUST_CHECK enum err merge_numbers_check(struct db *const *shards, size_t count,
                                        const struct merge_tenants *tenants, struct problem *p,
                                        int64_t *ret_highest);

/* Is the record of an idempotency key one of those that a move leaves in shard 0, where its request
 * is repeated, and copies to the tenant's shard all the same? By its route. */
bool merge_is_of_shard_0(struct str route);

#endif
