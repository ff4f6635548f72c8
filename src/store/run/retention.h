/* Removes finished runs with everything that belongs to them, a few rows at a time. The run itself
 * is removed last, so that the rest is found again after a crash. */
#ifndef PAWL_STORE_RUN_RETENTION_H
#define PAWL_STORE_RUN_RETENTION_H

#include "store/db.h"

/* The next tenant after `after`, by number, whose runs are removed after a time. */
MUST_CHECK enum err retention_next_tenant(struct db *db, int64_t after, bool *ret_found,
                                          int64_t *ret_tenant, int64_t *ret_retention_ms);
/* The tenant's next run after `after`, oldest first, and when it ended (-1: it has not, or an open
 * job of its parent has yet to take its result). */
MUST_CHECK enum err retention_next_run(struct db *db, int64_t tenant, int64_t after,
                                       bool *ret_found, int64_t *ret_run, int64_t *ret_finished_at);
/* Removes up to `rows` rows; *ret_gone when that was all. */
MUST_CHECK enum err retention_remove(struct db *db, int64_t tenant, int64_t run, int64_t rows,
                                     int64_t *ret_removed, bool *ret_gone);
/* Has a part of the run been removed already? What is left does not say what the run did. */
MUST_CHECK enum err retention_has_begun(struct db *db, int64_t run, bool *ret);

#endif
