/* What follows from an op before it is over: queued runs take the slots that were freed.
 *
 * Those runs are other people's work. If one of them cannot start, tx->dispatch_failed says so; the
 * transaction is then rolled back and run again with tx->dispatches_later set, in which queued runs
 * are left to background work. */
#ifndef PAWL_CORE_RUN_FOLLOW_UP_H
#define PAWL_CORE_RUN_FOLLOW_UP_H

#include "core/txn/tx.h"

MUST_CHECK enum err follow_up(struct tx *tx, struct problem *p);

#endif
