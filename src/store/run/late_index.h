/* Indexes that are filled later, in bulk. An index by tenant would make every insert dirty a page
 * of its own; rows that are a moment old are found without it (by number, or in memory), and then
 * go into it sorted, many to a page. */
#ifndef PAWL_STORE_RUN_LATE_INDEX_H
#define PAWL_STORE_RUN_LATE_INDEX_H

#include "store/db.h"

enum late_index { LATE_IDEMPOTENCY, LATE_RUNS };

/* Rows up to this number are in the index. That of runs comes with `holding`, the runs that hold a
 * slot. */
MUST_CHECK enum err late_index_through(struct db *db, enum late_index which, int64_t *ret);
/* Indexes all rows up to `last`. Inside a transaction. */
MUST_CHECK enum err late_index_fill(struct db *db, enum late_index which, int64_t last);

#endif
