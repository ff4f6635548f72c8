/* A failed run tries its failed steps again. */
#ifndef PAWL_CORE_RUN_RUN_RETRY_H
#define PAWL_CORE_RUN_RUN_RETRY_H

#include "core/run/run_txn.h"

/* False when some items of a map were handed out and others ended before that: a person has to say,
 * with a rerun, which of them are evaluated or approved again. */
MUST_CHECK enum err run_txn_can_retry(const struct run_txn *m, bool *ret);
/* The caller has stored the limits that the run counts under from now on. */
MUST_CHECK enum err run_txn_retry(struct run_txn *m, struct str actor);

#endif
