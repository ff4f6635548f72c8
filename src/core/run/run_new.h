/* Making runs. Before: `m->run` is filled but for id, num and status, `m->def` is its definition,
 * the tenant is stored. Those that start at once are made by run_control.h. */
#ifndef PAWL_CORE_RUN_RUN_NEW_H
#define PAWL_CORE_RUN_RUN_NEW_H

#include "core/run/run_txn.h"

/* A run that waits for a slot; `waits_for` is the limit that is full: a limit key, or 0 for the
 * tenant. */
MUST_CHECK enum err run_txn_create_queued(struct run_txn *m, int64_t waits_for, struct problem *p);
/* A run that waits for its start_at. */
MUST_CHECK enum err run_txn_create_delayed(struct run_txn *m, struct problem *p);
/* A run that is a part of another: it needs no slot, and begins in a turn of its own. */
MUST_CHECK enum err run_txn_create_child(struct run_txn *m, struct problem *p);

/* --- for run_control.c --- */

/* Gives it an id, and its timeline the first event. */
MUST_CHECK enum err run_txn_begin(struct run_txn *m, enum run_status status);
/* Its time begins, if its workflow has a timeout. */
MUST_CHECK enum err run_txn_set_deadline(struct run_txn *m);
/* Fills p when a run could not be made. */
enum err run_txn_stored(enum err e, struct problem *p);

#endif
