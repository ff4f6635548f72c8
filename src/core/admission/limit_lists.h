/* The list of limits that each active or queued run keeps, against what its definition and its
 * input say. */
#ifndef PAWL_CORE_ADMISSION_LIMIT_LISTS_H
#define PAWL_CORE_ADMISSION_LIMIT_LISTS_H

#include "core/txn/tx.h"
#include "store/doctor/check.h"

/* As check_area(). A run whose definition or input cannot be read is passed over. */
MUST_CHECK enum err limit_lists_check(struct read_tx *tx, finding_each *each, void *ctx,
                                      struct check_result *result);
/* Makes the lists right, and the limits again that are lost. A run whose definition is lost keeps
 * of its list what is there. */
MUST_CHECK enum err limit_lists_mend(struct tx *tx);

#endif
