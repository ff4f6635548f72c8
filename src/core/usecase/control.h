/* Checks that use cases on a run share. In control.c. */
#ifndef PAWL_CORE_USECASE_CONTROL_H
#define PAWL_CORE_USECASE_CONTROL_H

#include "core/run/run_txn.h"

/* ERR_CONCURRENCY when the run is not the version that the caller has read (-1: any). */
MUST_CHECK enum err run_check_version(struct op *op, const struct run_txn *m, int64_t if_match);
/* A refusal with a code of its own, because of the run's status. */
MUST_CHECK enum err run_refuse(struct op *op, const struct run_txn *m, enum err code,
                               const char *why);
/* Retries a failed run with its slots; refused at a limit like a start. */
MUST_CHECK enum err run_retry_failed(struct op *op, struct run_txn *m);

#endif
