/* An index that is filled later, in bulk. An index by tenant would make every insert dirty a page
 * of its own; runs that are a moment old are found without it, by number, and then go into it
 * sorted, in blocks. */
#ifndef PAWL_STORE_RUN_LATE_INDEX_H
#define PAWL_STORE_RUN_LATE_INDEX_H

#include "store/run/run_blocks.h"

/* Runs up to this number are in the index, which comes with `holding`, the runs that hold a slot.
 */
MUST_CHECK enum err late_index_through(struct db *db, int64_t *ret);
/* Indexes all runs up to `last`. Inside a transaction. */
MUST_CHECK enum err late_index_fill(struct db *db, int64_t last);

/* The same for a caller that knows the runs above the mark, all of them, sorted by tenant. */
MUST_CHECK enum err late_index_add(struct db *db, const struct indexed_run *runs, size_t count,
                                   int64_t last);
/* Makes what there is of the index of runs again, from the runs. */
MUST_CHECK enum err late_index_rebuild(struct db *db);

/* By tenant, and then by number. */
void indexed_runs_sort(struct indexed_run *runs, size_t count);

#endif
