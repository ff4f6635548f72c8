/* Rebuilds data that is derived from the runs, in the store and in the writer's caches. */
#ifndef PAWL_CORE_USECASE_REPAIR_H
#define PAWL_CORE_USECASE_REPAIR_H

#include "core/txn/tx.h"
#include "store/doctor/check.h"

/* Mends the areas that are broken; what lies between slots and the queue is one. Counters that wait
 * to be written have been (tx_flush). One transaction that reads all rows of these areas while
 * nobody else writes: some twenty seconds for a million runs, with the checks before and after. */
MUST_CHECK enum err repair_areas(struct tx *tx, const bool broken[static CHECK_AREA_COUNT]);

#endif
