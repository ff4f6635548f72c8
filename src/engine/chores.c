/* What the writer does by itself, in small slices. */
#include "engine/chores.h"

#include "base/limits.h"
#include "base/log.h"
#include "engine/dispatch.h"
#include "engine/execute.h"
#include "engine/run_move.h"
#include "store/idempotency.h"
#include "store/late_index.h"

enum { RETRY_MS = 1000, POSTPONE_MS = 60 * 1000 };

enum err chores_init(struct chores *c, struct db *db, struct replay_stats *stats,
                     const struct env *env)
{
    *c = (struct chores){.stats = stats, .env = env};
    return timers_next(db, &c->next_due);
}

bool chores_note_timer(struct chores *c, int64_t due_at)
{
    if (due_at < 0 || (c->next_due >= 0 && due_at >= c->next_due))
        return false;
    c->next_due = due_at;
    return true;
}

/* --- timers --- */

/* A sleep that is over, or a lease that has ended. A timer of an older generation is only removed.
 */
static enum err fire(struct tx *tx, const struct timer *timer, struct problem *p)
{
    struct job job;
    bool found = false;
    enum err e = jobs_find_at(tx->db, timer->run, timer->ordinal, &tx->arena, &found, &job);
    if (e != ERR_OK)
        return e;
    /* Later than the job says: it was put off. */
    if (!found || job.lease_epoch != timer->generation || job.due_at < 0 ||
        job.due_at > timer->due_at)
        return timers_delete(tx->db, timer);
    struct run_move m;
    e = run_move_load(&m, tx, job.run, p);
    if (e != ERR_OK)
        return e;
    if (job.state == JOB_RUNNING)
        return run_move_job(&m, &job, JOB_ON_EXPIRE);
    e = run_move_job(&m, &job, JOB_ON_FIRE);
    if (e == ERR_OK)
        e = run_move_finish(&m);
    return e == ERR_OK ? dispatch_freed(tx, p) : e;
}

/* A timer that cannot be fired must not hold up those behind it. */
static enum err postpone(struct tx *tx, const struct timer *timer, const struct problem *p)
{
    LOG(LOG_ERROR, "a timer cannot be fired and is put off", LOG_N("run", timer->run),
        LOG_Z("why", p->detail));
    struct timer later = *timer;
    later.due_at = tx->now_ms + POSTPONE_MS;
    enum err e = timers_delete(tx->db, timer);
    return e == ERR_OK ? timers_insert(tx->db, &later) : e;
}

static enum err fire_due(struct chores *c, struct tx *tx)
{
    struct timer due[TIMERS_PER_TURN_MAX];
    size_t count = 0;
    enum err e = timers_due(tx->db, tx->now_ms, TIMERS_PER_TURN_MAX, due, &count);
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        struct problem p;
        problem_init(&p);
        e = fire(tx, &due[i], &p);
        if (e != ERR_OK && !is_store_failure(e))
            e = postpone(tx, &due[i], &p);
        problem_release(&p);
    }
    if (e == ERR_OK)
        e = timers_next(tx->db, &c->next_due);
    return e;
}

/* --- sweeping --- */

static enum err evict_keys(struct chores *c, struct tx *tx)
{
    int64_t evicted = 0;
    enum err e = idempotency_evict(tx->db, tx->now_ms, EVICT_PER_TURN_MAX, &evicted);
    c->evict_more = evicted == EVICT_PER_TURN_MAX;
    return e;
}

/* --- indexes --- */

static bool indexing_is_due(const struct tx *tx)
{
    return idem_recent_count(tx->recent_keys) >= LATE_INDEX_ROWS || tx_runs_index_is_due(tx);
}

static enum err fill_indexes(struct tx *tx)
{
    enum err e = idem_recent_index(tx->recent_keys, tx->db);
    if (e == ERR_OK && tx->last_run_num < 0)
        e = runs_last_num(tx->db, &tx->last_run_num);
    if (e == ERR_OK)
        e = late_index_fill(tx->db, LATE_RUNS, tx->last_run_num);
    if (e == ERR_OK) {
        tx->runs_unindexed = 0;
        tx->holders_sought = false;
        tx->runs_through = -1;
    }
    return e;
}

/* --- queued runs --- */

/* In a transaction of its own: a queue that cannot be read must not hold up timers. */
static enum err dispatch(struct chores *c, struct tx *tx, int64_t mono)
{
    struct problem p;
    problem_init(&p);
    tx_start(tx);
    enum err e = db_begin(tx->db);
    if (e == ERR_OK)
        e = dispatch_turn(tx, &p);
    if (e == ERR_OK)
        e = tx_flush(tx);
    if (e == ERR_OK)
        e = db_commit(tx->db);
    if (e != ERR_OK) {
        LOG(LOG_ERROR, "queued runs could not be started", LOG_Z("why", p.detail));
        db_rollback(tx->db);
        tx_rolled_back(tx);
        c->dispatch_at = mono + RETRY_MS;
    }
    problem_release(&p);
    return e;
}

/* --- all of it --- */

static bool timers_are_due(const struct chores *c, int64_t now_ms)
{
    return c->next_due >= 0 && c->next_due <= now_ms;
}

static enum err run_slices(struct chores *c, struct tx *tx, int64_t mono)
{
    int64_t now = env_now_ms(c->env);
    bool sweep = mono >= c->next_sweep_at;
    bool timers = timers_are_due(c, now);
    bool indexes = sweep || indexing_is_due(tx);
    if (mono < c->retry_at || (!timers && !indexes))
        return ERR_OK;
    int64_t was_due = c->next_due;
    tx_start(tx);
    enum err e = db_begin(tx->db);
    if (e == ERR_OK && timers)
        e = fire_due(c, tx);
    if (e == ERR_OK && sweep)
        e = replay_stats_flush(c->stats, tx->db);
    if (e == ERR_OK && sweep)
        e = evict_keys(c, tx);
    if (e == ERR_OK && indexes)
        e = fill_indexes(tx);
    if (e == ERR_OK)
        e = tx_flush(tx);
    if (e == ERR_OK)
        e = db_commit(tx->db);
    if (e != ERR_OK) {
        LOG(LOG_WARN, "chores failed and will be tried again", LOG_Z("error", err_code(e)));
        db_rollback(tx->db);
        tx_rolled_back(tx);
        c->next_due = was_due; /* what fired has not fired after all */
        c->retry_at = mono + RETRY_MS;
        return e;
    }
    (void)chores_note_timer(c, tx->next_due);
    if (sweep)
        c->next_sweep_at = c->evict_more ? mono : mono + IDEM_STATS_FLUSH_MS;
    return ERR_OK;
}

enum err chores_run(struct chores *c, struct tx *tx)
{
    int64_t mono = env_mono_ms(c->env);
    enum err e = run_slices(c, tx, mono);
    if (e == ERR_OK && dispatch_is_due(tx) && mono >= c->dispatch_at) {
        e = dispatch(c, tx, mono);
        if (e == ERR_OK)
            (void)chores_note_timer(c, tx->next_due);
    }
    c->dispatch_more = dispatch_is_due(tx);
    return e;
}

int64_t chores_wait_ms(const struct chores *c, int64_t now_ms)
{
    int64_t mono = env_mono_ms(c->env);
    if (mono < c->retry_at)
        return c->retry_at - mono;
    int64_t wait = MAX(c->next_sweep_at - mono, (int64_t)0);
    if (c->dispatch_more)
        wait = MIN(wait, MAX(c->dispatch_at - mono, (int64_t)0));
    if (c->next_due >= 0)
        wait = MIN(wait, MAX(c->next_due - now_ms, (int64_t)0));
    return wait;
}
