/* Rebuilds the data that is derived from the runs: slots and counters, queues and places in
 * them, late indexes, timers. Writes only rows that differ, so an intact store stays unchanged.
 * Inside a transaction; each part reads all its source rows. */
#ifndef PAWL_STORE_DOCTOR_REPAIR_H
#define PAWL_STORE_DOCTOR_REPAIR_H

#include "store/run/limit_keys.h"

/* --- the lists of limits that runs keep: they must be right before the rest is made of them --- */

/* A run that is active or queued, as far as its limits are concerned. */
struct live_run {
    int64_t num;
    int64_t tenant;
    struct str workflow_id;
    int64_t workflow_version;
    struct str input;
    struct str scopes; /* perhaps damaged; ptr NULL: none */
};

/* Those behind `after`, in order. `each` returns false to stop. Text is borrowed for the call. */
typedef bool live_run_each(void *ctx, const struct live_run *run);
MUST_CHECK enum err live_runs(struct db *db, int64_t after, live_run_each *each, void *ctx);

/* The highest number that a scope has, or a list of a live run names. */
MUST_CHECK enum err repair_last_scope(struct db *db, int64_t *ret);
MUST_CHECK enum err repair_has_scope(struct db *db, int64_t num, bool *ret);
/* It is of the tenant's workflow. */
MUST_CHECK enum err repair_owns_scope(struct db *db, int64_t num, int64_t tenant,
                                      struct str workflow_id, bool *ret);
/* Under the number that it has, with no runs. */
MUST_CHECK enum err repair_insert_scope(struct db *db, const struct limit_key_row *scope);
/* Empty: none. To its readers the run does not change by it. */
MUST_CHECK enum err repair_set_list(struct db *db, int64_t run, struct str scopes);

/* --- the rest --- */

/* Slots, lines, places in the queue, and the counters of tenants and scopes. */
MUST_CHECK enum err repair_admission(struct db *db);
MUST_CHECK enum err repair_indexes(struct db *db);
MUST_CHECK enum err repair_first_jobs(struct db *db);
MUST_CHECK enum err repair_timers(struct db *db);

#endif
