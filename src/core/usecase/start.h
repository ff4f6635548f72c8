/* Starting runs, for who starts them without a request. */
#ifndef PAWL_CORE_USECASE_START_H
#define PAWL_CORE_USECASE_START_H

#include "core/run/run_txn.h"

/* The time of a delayed run has come: it is admitted, stands in line from now
 * on, or fails because the queue is full. */
MUST_CHECK enum err start_delayed(struct run_txn *m, struct problem *p);

#endif
