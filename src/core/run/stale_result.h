/* Requests of workers whose lease is gone. */
#ifndef PAWL_CORE_RUN_STALE_RESULT_H
#define PAWL_CORE_RUN_STALE_RESULT_H

#include "core/run/run_txn.h"
#include "store/run/jobs.h"

/* Rejects what comes too late, with ERR_LEASE_LOST, and records it in the timeline once for each
 * lease. */
MUST_CHECK enum err job_refuse_stale(struct op *op, struct run_txn *m, struct job *job,
                                     struct str token, const char *why);

#endif
