/* Several shards become one store (docs/adr/061): which of their rows it gets, and what is changed
 * in them. Rows keep their numbers. The shards are open, and nobody writes to them. */
#ifndef PAWL_STORE_COPY_MERGE_H
#define PAWL_STORE_COPY_MERGE_H

#include "store/copy/copy_tables.h"

struct merge;

/* Reads what is needed of the shards, and refuses those that cannot become one store. `tables` are
 * those of each shard; all pointers outlive the merge. */
MUST_CHECK enum err merge_new(struct db *const *shards, size_t count,
                              const struct copy_tables *tables, struct problem *p,
                              struct merge **ret);
void merge_free(struct merge *m);

/* False: no row of the table is copied from this shard. */
bool merge_copies(const struct merge *m, size_t shard, size_t table);
/* A row of a shard with all its columns: what the store gets in place of it, or nothing. */
MUST_CHECK enum err merge_row(const struct merge *m, size_t shard, size_t table,
                              struct db_value *values, bool *ret_keep);
/* False: the table gets other rows, too, when the merge is finished. */
bool merge_is_exact(const struct merge *m, size_t table);

/* The rest, once all rows are there, in the transaction: marks, positions of streams, keys of
 * leases, and which chain of the audit trail is whose. Refused: a tenant has used one idempotency
 * key for two requests, in two shards. */
MUST_CHECK enum err merge_finish(const struct merge *m, struct db *target, struct problem *p);

#endif
