/* What the writer does by itself, in small slices. */
#include "engine/chores.h"

#include "base/limits.h"
#include "base/log.h"
#include "engine/aftermath.h"
#include "engine/approval_move.h"
#include "engine/cpu_shares.h"
#include "engine/dispatch.h"
#include "engine/entity_call.h"
#include "engine/entity_requeue.h"
#include "engine/entity_starts.h"
#include "engine/execute.h"
#include "engine/feed_hold.h"
#include "engine/job_move.h"
#include "engine/run_move.h"
#include "engine/schedules.h"
#include "engine/signal_wait.h"
#include "engine/uc_start.h"
#include "engine/window_stats.h"
#include "store/idempotency.h"
#include "store/late_index.h"

enum { RETRY_MS = 1000, POSTPONE_MS = 60 * 1000 };

/* The earliest timer or schedule; -1: none. */
static enum err next_due(struct db *db, int64_t *ret)
{
    int64_t timer = -1;
    int64_t schedule = -1;
    enum err e = timers_next(db, &timer);
    if (e == ERR_OK)
        e = schedules_next(db, &schedule);
    *ret = timer < 0 || (schedule >= 0 && schedule < timer) ? schedule : timer;
    return e;
}

enum err chores_init(struct chores *c, struct db *db, struct replay_stats *stats,
                     const struct env *env)
{
    *c = (struct chores){.stats = stats, .env = env};
    return next_due(db, &c->next_due);
}

bool chores_note_timer(struct chores *c, int64_t due_at)
{
    if (due_at < 0 || (c->next_due >= 0 && due_at >= c->next_due))
        return false;
    c->next_due = due_at;
    return true;
}

/* --- timers --- */

/* The run's own: its start, its deadline, or more to do than one turn may take. */
static enum err fire_run(struct tx *tx, const struct timer *timer, struct problem *p)
{
    struct run_move m;
    enum err e = run_move_load(&m, tx, timer->run, p);
    if (e != ERR_OK && e != ERR_RUN_NOT_FOUND)
        return e;
    bool found = e == ERR_OK;
    e = timers_delete(tx->db, timer);
    if (e != ERR_OK || !found || run_is_over(m.run.status))
        return e;
    if (timer->ordinal == TIMER_PARENT_OVER)
        return run_move_cancel(&m, STR("pawl"), STR("the run that it is a part of has ended"));
    if (timer->ordinal == TIMER_GO_ON) {
        cpu_shares_resume(tx->cpu, m.run.tenant);
        return m.run.status == RUN_QUEUED ? ERR_OK : run_move_go_on(&m);
    }
    /* A timer that is later than the run says was put off; an earlier one is of another time. */
    bool starts = m.run.start_at >= 0 && m.run.start_at <= timer->due_at;
    if (m.run.status == RUN_QUEUED)
        return starts ? start_delayed(&m, p) : ERR_OK;
    if (m.run.deadline_at < 0 || m.run.deadline_at > timer->due_at)
        return ERR_OK;
    advance_timed_out(&m.progress);
    return run_move_go_on(&m);
}

static enum err give_up_child(struct run_move *m, struct job *job)
{
    struct attempt_loss late = {
        .error = error_json(m->tx, "TIMED_OUT", STR("the child run took longer than timeout_ms")),
        .code = STR("TIMED_OUT"),
        .timed_out = true,
    };
    enum err e = late.error.ptr != NULL ? job_attempt_lost(m, job, &late) : ERR_NO_MEMORY;
    return e == ERR_OK ? run_move_doom(m->tx, job->child) : e;
}

/* `child` is NULL when the child run is not there any more. */
static enum err child_failed(struct run_move *m, struct job *job, const struct run *child)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_text(&o, "code", STR("CHILD_FAILED"));
    json_add_text(&o, "status",
                  child != NULL ? str_of(run_status_name(child->status)) : STR("removed"));
    json_add_uuid(&o, "run_id", job->child);
    json_add_raw(&o, "cause", child != NULL ? child->error : STR_NONE);
    json_close(&o, '}');
    struct str error = arena_take(&m->tx->arena, &text);
    return error.ptr != NULL ? job_attempt_failed(m, job, error, STR("CHILD_FAILED"), false)
                             : ERR_NO_MEMORY;
}

/* A child run is over: its result is the job's. */
static enum err take_child(struct run_move *m, struct job *job, struct problem *p)
{
    struct run_move child;
    bool found = false;
    enum err e = run_move_load_if(&child, m->tx, uuid_time(job->child), p, &found);
    if (e != ERR_OK)
        return e;
    if (!found)
        return child_failed(m, job, NULL);
    if (!run_is_over(child.run.status)) {
        bool late = job->due_at >= 0 && job->due_at <= m->tx->now_ms;
        return late ? give_up_child(m, job) : ERR_OK;
    }
    bool has_output = child.run.error.ptr == NULL;
    if (child.run.status != RUN_SUCCEEDED || !has_output)
        return child_failed(m, job, &child.run);
    job->output = child.run.output.ptr != NULL ? child.run.output : STR("null");
    e = job_move(m, job, JOB_ON_COMPLETE);
    return e == ERR_OK ? run_move_job_over(m, job) : e;
}

/* A sleep, a delay or a wait is over. */
static enum err fire_scheduled(struct run_move *m, struct job *job)
{
    enum step_type type = job_step(m->def, job)->type;
    if (type == STEP_SLEEP) {
        enum err e = job_move(m, job, JOB_ON_FIRE);
        return e == ERR_OK ? run_move_job_over(m, job) : e;
    }
    if (type == STEP_WAIT_SIGNAL)
        return signal_wait_expire(m, job);
    if (m->run.status != RUN_PAUSED)
        return job_move(m, job, JOB_ON_WAKE);
    struct job held = *job; /* it stays where it is until the run is resumed */
    held.due_at = -1;
    return job_row_touch(m->tx, job, &held);
}

/* A timer of an older generation is only removed. */
static enum err fire_job(struct tx *tx, const struct timer *timer, struct problem *p)
{
    struct job job;
    bool found = false;
    enum err e = jobs_find_at(tx->db, timer->run, timer->ordinal, &tx->arena, &found, &job);
    if (e != ERR_OK)
        return e;
    bool child = found && job.state == JOB_DISPATCHED && !uuid_is_nil(job.child);
    bool due = found && !job_is_over(job.state) && job.lease_epoch == timer->generation &&
               job.due_at >= 0 &&
               job.due_at <= timer->due_at; /* later than the job says: put off */
    if (!due || child)
        e = timers_delete(tx->db, timer);
    if (e != ERR_OK || (!due && !child))
        return e;
    if (job_is_of_entity(&job))
        return entity_call_due(tx, &job, p);
    struct run_move m;
    e = run_move_load(&m, tx, job.run, p);
    if (e == ERR_OK && job.state == JOB_APPROVAL)
        return approval_due(&m, &job);
    if (e == ERR_OK && child)
        e = take_child(&m, &job, p);
    else if (e == ERR_OK && job.state == JOB_SCHEDULED)
        e = fire_scheduled(&m, &job);
    else if (e == ERR_OK)
        e = job_attempt_expired(&m, &job);
    if (e == ERR_OK && job_is_over(job.state))
        e = run_move_go_on(&m);
    return e;
}

/* One of an entity's own: a call of its handler is due, unless one is under way. */
static enum err fire_entity(struct tx *tx, const struct timer *timer, struct problem *p)
{
    struct entity_move m;
    bool found = false;
    enum err e = entity_move_load(&m, tx, timer->run, p, &found);
    if (e == ERR_OK)
        e = timers_delete(tx->db, timer);
    return e == ERR_OK && found ? entity_move_timer_due(&m, timer->due_at) : e;
}

static enum err fire_owner(struct tx *tx, const struct timer *timer, struct problem *p)
{
    switch (timer->ordinal) {
    case TIMER_ENTITY:
        return fire_entity(tx, timer, p);
    case TIMER_ENTITY_START:
        return entity_starts_due(tx, timer, p);
    default:
        return fire_run(tx, timer, p);
    }
}

static enum err fire(struct tx *tx, const struct timer *timer, struct problem *p)
{
    enum err e = timer->ordinal <= TIMER_RUN ? fire_owner(tx, timer, p) : fire_job(tx, timer, p);
    if (e == ERR_OK)
        e = aftermath(tx, p);
    tx_drop_json(tx);
    return e;
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
    /* Those that a turn has no room or no time for are due still, and come next. */
    int64_t end = env_mono_ms(c->env) + TIMERS_MS_PER_TURN_MAX;
    size_t loaded = 0;
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        if (i > 0 && (loaded > TIMERS_BYTES_PER_TURN_MAX || env_mono_ms(c->env) > end))
            break;
        struct problem p;
        problem_init(&p);
        struct arena_mark mark = arena_mark(&tx->arena);
        e = fire(tx, &due[i], &p);
        loaded += tx->arena.used;
        if (e == ERR_OK)
            arena_back_to(&tx->arena, mark);
        if (e != ERR_OK && !is_store_failure(e))
            e = postpone(tx, &due[i], &p);
        problem_release(&p);
    }
    if (e == ERR_OK)
        e = schedules_fire(tx);
    return e == ERR_OK ? next_due(tx->db, &c->next_due) : e;
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
    int64_t last = 0;
    enum err e = idem_recent_index(tx->recent_keys, tx->db);
    if (e == ERR_OK)
        e = tx_last_num(tx, &last);
    if (e == ERR_OK)
        e = late_index_fill(tx->db, LATE_RUNS, last);
    if (e == ERR_OK) {
        tx->pending->runs_unindexed = 0;
        tx->pending->holders_sought = false;
        tx->nums->runs_through = -1;
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
        e = tx_commit(tx);
    if (e != ERR_OK) {
        LOG(LOG_ERROR, "queued runs could not be started", LOG_Z("why", p.detail));
        db_rollback(tx->db);
        tx_rolled_back(tx);
        c->dispatch_at = mono + RETRY_MS;
    }
    problem_release(&p);
    return e;
}

/* --- old runs --- */

static enum err remove_old_runs(struct chores *c, struct tx *tx, int64_t mono)
{
    bool more = false;
    enum err e = retention_slice(&c->retention, tx, &more);
    c->retention_at = more ? mono : mono + RETENTION_PAUSE_MS;
    return e;
}

static enum err sweep_feed(struct chores *c, struct tx *tx, int64_t mono)
{
    bool more = false;
    enum err e = feed_hold_sweep(tx, &more);
    c->feed_at = more ? mono : mono + FEED_SWEEP_PAUSE_MS;
    return e;
}

/* --- webhooks --- */

static enum err sweep_deliveries(struct chores *c, struct tx *tx, int64_t mono)
{
    bool more = false;
    enum err e = delivery_log_slice(&c->delivery_log, tx, &more);
    c->delivery_log_at = more ? mono : mono + DELIVERIES_SWEEP_PAUSE_MS;
    return e;
}

/* In a transaction of its own: events that cannot be told must not hold up timers. */
static enum err fan_out(struct chores *c, struct tx *tx, int64_t mono)
{
    tx_start(tx);
    enum err e = db_begin(tx->db);
    if (e == ERR_OK)
        e = fan_out_slice(&c->fan_out, tx);
    if (e == ERR_OK)
        e = tx_commit(tx);
    c->fan_out.at = fan_out_is_behind(&c->fan_out, tx) ? mono : mono + FAN_OUT_PAUSE_MS;
    if (e != ERR_OK) {
        LOG(LOG_ERROR, "events could not be handed to webhooks", LOG_Z("error", err_code(e)));
        db_rollback(tx->db);
        tx_rolled_back(tx);
        c->fan_out.at = mono + RETRY_MS;
    }
    return e;
}

static bool fan_out_may_run(const struct chores *c, const struct tx *tx, int64_t mono)
{
    return fan_out_is_behind(&c->fan_out, tx) && mono >= c->fan_out.at;
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
    bool old_runs = !c->keeps_all && mono >= c->retention_at;
    bool old_deliveries = mono >= c->delivery_log_at;
    bool old_feed = !c->keeps_all && mono >= c->feed_at;
    bool generations = !c->keeps_all && (sweep || c->entity_sweep_more);
    bool requeue = sweep || c->requeue_more;
    if (mono < c->retry_at || (!timers && !indexes && !old_runs && !old_deliveries && !old_feed &&
                               !generations && !requeue))
        return ERR_OK;
    int64_t was_due = c->next_due;
    tx_start(tx);
    enum err e = db_begin(tx->db);
    if (e == ERR_OK && timers)
        e = fire_due(c, tx);
    if (e == ERR_OK && sweep)
        e = replay_stats_flush(c->stats, tx->db);
    if (e == ERR_OK && sweep)
        e = window_stats_flush(tx->window_stats, tx->db, tx->now_ms);
    if (e == ERR_OK && sweep)
        e = evict_keys(c, tx);
    if (e == ERR_OK && indexes)
        e = fill_indexes(tx);
    if (e == ERR_OK && old_runs) /* behind the indexes: it finds them there */
        e = remove_old_runs(c, tx, mono);
    if (e == ERR_OK && old_feed)
        e = sweep_feed(c, tx, mono);
    if (e == ERR_OK && generations)
        e = entity_sweep_slice(&c->entity_sweep, tx, &c->entity_sweep_more);
    if (e == ERR_OK && requeue)
        e = entity_requeue_slice(tx, &c->requeue_more);
    if (e == ERR_OK && old_deliveries)
        e = sweep_deliveries(c, tx, mono);
    if (e == ERR_OK && sweep)
        e = fan_out_keep(&c->fan_out, tx);
    if (e == ERR_OK)
        e = tx_commit(tx);
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
    if (e == ERR_OK && fan_out_may_run(c, tx, mono))
        e = fan_out(c, tx, mono);
    c->fan_out_behind = fan_out_is_behind(&c->fan_out, tx);
    return e;
}

bool chores_are_wanted(const struct chores *c, const struct tx *tx)
{
    return tx_runs_index_is_due(tx) || dispatch_is_due(tx) || fan_out_is_behind(&c->fan_out, tx);
}

int64_t chores_wait_ms(const struct chores *c, int64_t now_ms)
{
    int64_t mono = env_mono_ms(c->env);
    if (mono < c->retry_at)
        return c->retry_at - mono;
    int64_t swept_at = MIN(c->next_sweep_at, c->delivery_log_at);
    if (!c->keeps_all)
        swept_at = MIN(swept_at, MIN(c->retention_at, c->feed_at));
    bool more = c->entity_sweep_more || c->requeue_more;
    int64_t wait = more ? 0 : MAX(swept_at - mono, (int64_t)0);
    if (c->fan_out_behind)
        wait = MIN(wait, MAX(c->fan_out.at - mono, (int64_t)0));
    if (c->dispatch_more)
        wait = MIN(wait, MAX(c->dispatch_at - mono, (int64_t)0));
    if (c->next_due >= 0)
        wait = MIN(wait, MAX(c->next_due - now_ms, (int64_t)0));
    return wait;
}
