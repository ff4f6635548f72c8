/* Rebuilds data that is derived from the runs. */
#include "core/usecase/repair.h"

#include "core/admission/limit_lists.h"
#include "core/run/dispatch.h"
#include "core/txn/job_timers.h"
#include "store/doctor/repair.h"
#include "store/run/timers.h"

static enum err mend_admission(struct tx *tx)
{
    enum err e = limit_lists_mend(tx);
    if (e == ERR_OK)
        e = repair_admission(tx->db);
    if (e == ERR_OK)
        e = tx_reload_counters(tx);
    dispatch_all(tx); /* queued runs may be able to start, or wait for another limit */
    return e;
}

static enum err mend_indexes(struct tx *tx)
{
    tx->nums->runs_through = -1;
    recent_runs_forget(tx->recent_runs);
    enum err e = repair_indexes(tx->db);
    return e == ERR_OK ? idem_keys_rebuild(tx->keys, tx->db) : e;
}

static enum err mend_timers(struct tx *tx)
{
    int64_t due = -1;
    enum err e = job_timers_fold(tx);
    if (e == ERR_OK)
        e = repair_timers(tx->db);
    if (e == ERR_OK)
        e = timers_next(tx->db, &due);
    tx_note_due(tx, due);
    return e;
}

enum err repair_areas(struct tx *tx, const bool broken[static CHECK_AREA_COUNT])
{
    enum err e = ERR_OK;
    if (broken[CHECK_SLOTS] || broken[CHECK_QUEUE])
        e = mend_admission(tx);
    if (e == ERR_OK && broken[CHECK_INDEXES])
        e = mend_indexes(tx);
    if (e == ERR_OK && broken[CHECK_JOBS])
        e = repair_first_jobs(tx->db);
    if (e == ERR_OK && (broken[CHECK_JOBS] || broken[CHECK_ENTITIES]))
        e = mend_timers(tx);
    return e;
}
