/* Suspended jobs: what they wait for, and how they go back to their queue when it has come. A job
 * is suspended by job_suspend.h.
 *
 * A suspended job has no worker and no lease. Whatever ends its wait stores what has come in its
 * row of suspensions, in the transaction that takes the job back to its queue; the next claims hand
 * it out as `resumed_by`, until the job is suspended again. */
#ifndef PAWL_CORE_RUN_SUSPENSION_H
#define PAWL_CORE_RUN_SUSPENSION_H

#include "core/run/run_txn.h"
#include "store/run/approvals.h"
#include "store/run/signals.h"
#include "store/run/suspensions.h"

/* Each takes a suspended job back to its queue; the caller advances the run. In a paused run the
 * job is held there. */

/* Its time has come. */
MUST_CHECK enum err suspension_due(struct run_txn *m, struct job *job);
/* The signal that it waits for is there, and is the job's from now on. */
MUST_CHECK enum err suspension_give(struct run_txn *m, const struct run_signal *s, struct job *job);
/* The question that one has asked is decided, or has expired. */
MUST_CHECK enum err suspension_decided(struct run_txn *m, const struct job *question,
                                       const struct approval *a);

/* The suspended job was cancelled: nobody need answer its question any more. */
MUST_CHECK enum err suspension_cancelled(struct run_txn *m, const struct job *job);

/* The suspension of a suspended job. ERR_DAMAGED when there is none. */
MUST_CHECK enum err suspension_find(struct read_tx *tx, const struct job *job,
                                    struct suspension *ret);
/* What it waits for: the members until, signal and approval_id of an object, null where it does not
 * wait for that. */
MUST_CHECK enum err suspension_show_wait(struct read_tx *tx, const struct suspension *s,
                                         struct json_out *o);

#endif
