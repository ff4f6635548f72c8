/* Makes everything anew that is derived from the runs. */
#include "engine/repair.h"

#include "engine/dispatch.h"
#include "engine/limit_lists.h"
#include "store/jobs.h"
#include "store/repair.h"

enum err repair_all(struct tx *tx)
{
    int64_t due = -1;
    enum err e = limit_lists_mend(tx);
    if (e == ERR_OK)
        e = repair_derived(tx->db);
    if (e == ERR_OK)
        e = tx_reload_counters(tx);
    if (e == ERR_OK)
        e = timers_next(tx->db, &due);
    if (due >= 0)
        tx->next_due = tx->next_due < 0 ? due : MIN(tx->next_due, due);
    tx->runs_through = -1;
    dispatch_all(tx); /* queued runs may be able to start, or wait for another limit */
    return e;
}
