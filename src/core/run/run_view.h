/* What the steps of a run look like to its readers. */
#ifndef PAWL_CORE_RUN_RUN_VIEW_H
#define PAWL_CORE_RUN_RUN_VIEW_H

#include "core/run/run_txn.h"

/* One view per step, read from its jobs unless they were made in this transaction. */
MUST_CHECK enum err run_txn_show(struct run_txn *m, const struct step_view **ret_views);

#endif
