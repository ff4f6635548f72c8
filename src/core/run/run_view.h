/* What the steps of a run look like to its readers. */
#ifndef PAWL_CORE_RUN_RUN_VIEW_H
#define PAWL_CORE_RUN_RUN_VIEW_H

#include "core/run/run_txn.h"

/* One view per step, read from its jobs unless they were made in this transaction. */
MUST_CHECK enum err run_txn_show(struct run_txn *m, const struct step_view **ret_views);
/* Puts the run that has ended into the EFFECT_RUN_ENDED, as the answer of its start shows it,
 * unless it is large. All events must be written. An error is one of the store; a run that cannot
 * be shown is left out. */
MUST_CHECK enum err run_show_ended(struct tx *tx, struct effect *ended);

#endif
