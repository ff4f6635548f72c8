/* Appends an entry to the audit trail (who did what, when and from where), in the transaction of
 * the change itself.
 *
 * * * Changes to shared objects are audited: settings, keys, definitions, schedules, decisions,
 * and runs that a caller controls by hand. Starts and job results are not; the run's timeline
 * has those. */
#ifndef PAWL_CORE_TXN_AUDIT_RECORD_H
#define PAWL_CORE_TXN_AUDIT_RECORD_H

#include "core/txn/tx.h"

/* `tenant` 0 is the chain of the server itself. `detail` is JSON, or ptr NULL. */
MUST_CHECK enum err audit_record(const struct op *op, struct tx *tx, int64_t tenant,
                                 const char *action, struct str target, struct str detail);
/* The same about a run or a job, by its id. */
MUST_CHECK enum err audit_record_id(const struct op *op, struct tx *tx, int64_t tenant,
                                    const char *action, struct uuid target, struct str detail);

#endif
