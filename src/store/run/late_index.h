/* An index that is filled later, in bulk. An index by tenant would make every insert dirty a page
 * of its own; runs that are a moment old are found without it, by number, and then go into it
 * sorted, many to a page. */
#ifndef PAWL_STORE_RUN_LATE_INDEX_H
#define PAWL_STORE_RUN_LATE_INDEX_H

#include "store/db.h"

/* Runs up to this number are in the index, which comes with `holding`, the runs that hold a slot.
 */
MUST_CHECK enum err late_index_through(struct db *db, int64_t *ret);
/* Indexes all runs up to `last`. Inside a transaction. */
MUST_CHECK enum err late_index_fill(struct db *db, int64_t last);

struct indexed_run {
    int64_t tenant;
    int64_t num;
    bool holds; /* a slot */
};

/* The same for a caller that knows the runs above the mark, all of them, sorted by tenant. */
MUST_CHECK enum err late_index_add(struct db *db, const struct indexed_run *runs, size_t count,
                                   int64_t last);

#endif
