/* What callers do with runs: create them with their slots, admit, pause, resume and end them. */
#ifndef PAWL_CORE_RUN_RUN_CONTROL_H
#define PAWL_CORE_RUN_RUN_CONTROL_H

#include "core/run/run_new.h"

/* A new run that starts at once: the limits have room. As run_new.h says. */
MUST_CHECK enum err run_txn_create(struct run_txn *m, struct problem *p);
/* A new run that goes on where another stopped: steps that are not `again` are taken over by
 * `copy`. */
typedef enum err copy_step_fn(struct run_txn *to, const struct run_txn *from, size_t step);
MUST_CHECK enum err run_txn_create_from(struct run_txn *m, const struct run_txn *from,
                                        const bool *again, copy_step_fn *copy, struct problem *p);
/* A queued run gets its slots and begins. */
MUST_CHECK enum err run_txn_admit(struct run_txn *m);
/* A run that waited for its start_at cannot begin: it ends with `m->run.error`. */
MUST_CHECK enum err run_txn_fail(struct run_txn *m);

/* Pauses or resumes it. */
MUST_CHECK enum err run_txn_control(struct run_txn *m, enum run_event on, struct str actor);
/* Ends the run at once; the timeline says by whom and why (reason: ptr NULL for none).
 * ERR_STATUS_CONFLICT when it has already ended. */
MUST_CHECK enum err run_txn_cancel(struct run_txn *m, struct str actor, struct str reason);
/* The run cannot go on, because of `why`: it fails at once, whatever its steps say. Loads one job
 * at a time, so that it works for a run that is too large for anything else. */
MUST_CHECK enum err run_txn_give_up(struct tx *tx, int64_t run_num, enum err why,
                                    const char *message, struct problem *p);

/* {"by":…,"reason":…} for the timeline, in the transaction's arena; ptr NULL when memory ran out.
 */
struct str run_txn_control_note(struct run_txn *m, struct str actor, struct str reason);

#endif
