/* Timers of jobs, written by fold. */
#include "core/txn/job_timers.h"

enum err job_timer_arm(struct tx *tx, const struct timer *timer)
{
    tx_note_due(tx, timer->due_at);
    if (!tx->remembers || !recent_timers_add(tx->recent_timers, timer))
        return timers_insert(tx->db, timer);
    tx->touched++;
    return ERR_OK;
}

enum err job_timer_disarm(struct tx *tx, const struct timer *timer)
{
    if (!recent_timers_remove(tx->recent_timers, timer))
        return timers_delete(tx->db, timer);
    tx->touched++;
    return ERR_OK;
}

/* --- the fold --- */

static enum err write_all(struct tx *tx)
{
    size_t count = recent_timers_count(tx->recent_timers);
    if (count == 0)
        return ERR_OK;
    struct timer *timers = arena_alloc(&tx->arena, count * sizeof(*timers));
    if (timers == NULL)
        return ERR_NO_MEMORY;
    recent_timers_sorted(tx->recent_timers, timers);
    return timers_insert_all(tx->db, timers, count);
}

/* From the jobs, because memory does not know them. */
static enum err find_again(struct tx *tx)
{
    int64_t next = -1;
    enum err e = timers_insert_missing(tx->db);
    if (e == ERR_OK)
        e = timers_next(tx->db, &next);
    tx_note_due(tx, next);
    return e;
}

enum err job_timers_fold(struct tx *tx)
{
    int64_t end = 0;
    enum err e = tx_feed_end(tx, &end);
    if (e == ERR_OK)
        e = tx->recent_timers->is_lost ? find_again(tx) : write_all(tx);
    if (e == ERR_OK)
        e = timers_folded(tx->db, end);
    if (e == ERR_OK)
        recent_timers_folded(tx->recent_timers);
    return e;
}

enum err job_timers_fold_due(struct tx *tx)
{
    int64_t earliest = recent_timers_earliest(tx->recent_timers);
    bool is_due = earliest >= 0 && earliest <= tx->now_ms;
    return is_due || tx->recent_timers->is_lost ? job_timers_fold(tx) : ERR_OK;
}

bool job_timers_want_fold(const struct tx *tx)
{
    return tx->recent_timers->is_lost ||
           recent_timers_count(tx->recent_timers) >= TIMERS_FOLDED_TOGETHER;
}

enum err job_timers_next(struct tx *tx, int64_t *ret_due_at)
{
    int64_t recent = recent_timers_earliest(tx->recent_timers);
    int64_t row = -1;
    enum err e = timers_next(tx->db, &row);
    *ret_due_at = row < 0 || (recent >= 0 && recent < row) ? recent : row;
    return e;
}
