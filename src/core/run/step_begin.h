/* Beginning steps: conditions, items, and a job of the right kind for each item. */
#ifndef PAWL_CORE_RUN_STEP_BEGIN_H
#define PAWL_CORE_RUN_STEP_BEGIN_H

#include "core/run/run_txn.h"

/* Evaluates the step's condition and items: it becomes active, is skipped or has failed. */
MUST_CHECK enum err step_begin(struct run_txn *m, size_t step);
/* Makes the jobs of its next items: at least one, and fewer than `count` when the tenant's share of
 * the writer's time is used up. */
MUST_CHECK enum err step_begin_items(struct run_txn *m, size_t step, int64_t count);
/* Makes the job that compensates it. */
MUST_CHECK enum err step_begin_undo(struct run_txn *m, size_t step);
/* Does beginning the step, or its compensation, take of its tenant's share: by evaluating an
 * expression, or by making many jobs? */
bool step_takes_share(const struct step_def *def);

#endif
