/* Makes anew what is derived from the runs: slots and counters, lines and places in the queue, late
 * indexes, timers. Only rows that differ are written, so a sound store stays as it is. Inside a
 * transaction, the lists of limits first: the rest is made of them.
 *
 * Reads all runs, jobs and indexes, as a full check does, and nobody else writes meanwhile. */
#ifndef PAWL_STORE_REPAIR_H
#define PAWL_STORE_REPAIR_H

#include "store/scopes.h"

/* --- the list of limits that a run keeps --- */

/* The first active or queued run behind `after` whose list is damaged, or names a limit that is not
 * there or not of its workflow. */
MUST_CHECK enum err repair_next_list(struct db *db, int64_t after, bool *ret_found,
                                     int64_t *ret_run);
/* What can be read of a list: numbers, each once. */
struct scope_list repair_read_list(struct str text);
MUST_CHECK enum err repair_has_scope(struct db *db, int64_t num, bool *ret);
/* Whether it is one of the tenant's workflow. */
MUST_CHECK enum err repair_owns_scope(struct db *db, int64_t num, int64_t tenant,
                                      struct str workflow_id, bool *ret);
/* Under the number that it has, with no runs. */
MUST_CHECK enum err repair_insert_scope(struct db *db, const struct scope *scope);
/* ptr NULL: none. To its readers the run does not change by it. */
MUST_CHECK enum err repair_set_list(struct db *db, int64_t run, struct str scopes);

/* --- the rest --- */

MUST_CHECK enum err repair_derived(struct db *db);

#endif
