/* The slots of a run and its place in the queue: taken, given back and left in the transaction that
 * changes the run, and nowhere else. So a counter is right whenever the runs are. */
#ifndef PAWL_CORE_ADMISSION_RUN_SLOTS_H
#define PAWL_CORE_ADMISSION_RUN_SLOTS_H

#include "core/txn/tx.h"
#include "store/run/limit_keys.h"
#include "store/run/runs.h"

/* Slots that an op has freed, or a place in the queue that it has left: others may start now. Lives
 * in the transaction's notes. */
struct freed_slots {
    struct freed_slots *next;
    int64_t tenant;
    struct limit_key_list scopes;
};

/* The run becomes active under its tenant and all its scopes. */
MUST_CHECK enum err run_slots_take(struct tx *tx, struct tenant *tenant, const struct run *run);
MUST_CHECK enum err run_slots_free(struct tx *tx, struct tenant *tenant, const struct run *run);

/* The tenant's limit may have been raised: what is queued is looked at when the op is over. */
MUST_CHECK enum err run_slots_note_room(struct tx *tx, int64_t tenant);

/* The run waits in its line; a new line waits for `waits_for` (a scope, or 0: the tenant). */
MUST_CHECK enum err run_queue_enter(struct tx *tx, struct tenant *tenant, const struct run *run,
                                    int64_t waits_for);
/* `admitted`: it takes its slots now; otherwise it leaves the queue permanently. */
MUST_CHECK enum err run_queue_leave(struct tx *tx, struct tenant *tenant, const struct run *run,
                                    bool admitted);

#endif
