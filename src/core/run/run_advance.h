/* Advancing a run: the one door through which its status changes, and the loop that does whatever
 * follows from what happened (domain/workflow/advance.h). A use case loads a run, changes a job or
 * the run, and then advances it. */
#ifndef PAWL_CORE_RUN_RUN_ADVANCE_H
#define PAWL_CORE_RUN_RUN_ADVANCE_H

#include "core/run/run_txn.h"

/* Moves the run by the table of domain/run.h, with every effect that the table names: slots, queue,
 * jobs, times and timeline. ERR_STATUS_CONFLICT when its status does not allow it. The caller
 * saves. */
MUST_CHECK enum err run_txn_apply(struct run_txn *m, enum run_event on);
/* Begins steps, ends the run when nothing is left to do, and saves it. */
MUST_CHECK enum err run_txn_advance(struct run_txn *m);

#endif
