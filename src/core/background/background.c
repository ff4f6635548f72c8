/* Background work: one table of kinds. */
#include "core/background/background.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "core/background/schedules.h"
#include "core/entity/entity_requeue.h"
#include "core/run/dispatch.h"
#include "core/run/run_control.h"
#include "core/run/run_txn.h"
#include "core/txn/feed_hold.h"
#include "core/txn/job_timers.h"
#include "core/txn/window_stats.h"
#include "core/usecase/execute.h"
#include "store/ended_sessions.h"
#include "store/idempotency.h"
#include "store/minutes.h"
#include "store/run/late_index.h"

enum {
    RETRY_MS = 1000,          /* after a failure of a whole kind; doubles each time … */
    RETRY_MS_MAX = 30 * 1000, /* … up to this */
};

/* --- timers and schedules --- */

static int64_t until_wall(const struct background *b, int64_t due_at)
{
    return due_at < 0 ? INT64_MAX : MAX(due_at - b->env.now_ms, (int64_t)0);
}

static int64_t timers_wait(const struct background *b, const struct tx *tx, int64_t mono)
{
    (void)tx;
    (void)mono;
    return until_wall(b, b->timers.next);
}

static enum err timers_turn(struct background *b, struct tx *tx, struct problem *p)
{
    int64_t failed = 0;
    enum err e = timer_batch_turn(&b->timers, &b->env, tx, &b->aside, p, &failed);
    if (failed > 0)
        metric_add(b->failures, STR("timers"), STR_NONE, (double)failed);
    return e;
}

static int64_t schedules_wait(const struct background *b, const struct tx *tx, int64_t mono)
{
    (void)tx;
    (void)mono;
    return until_wall(b, b->next_schedule);
}

struct schedules_slice {
    int64_t most;
    int64_t next;
    bool fired; /* a schedule was due */
    int64_t aside_ms;
    enum err why;
    char detail[PROBLEM_DETAIL_MAX];
};

static enum err fire_schedules(void *ctx, struct tx *tx, struct problem *p)
{
    struct schedules_slice *s = ctx;
    enum err e = schedules_fire(tx, s->most, p, &s->fired);
    return e == ERR_OK ? schedules_next(tx->db, &s->next) : e;
}

static enum err put_schedule_aside(void *ctx, struct tx *tx, struct problem *p)
{
    struct schedules_slice *s = ctx;
    (void)p;
    enum err e = schedules_put_aside(tx, tx->now_ms + s->aside_ms, s->why, s->detail);
    return e == ERR_OK ? schedules_next(tx->db, &s->next) : e;
}

/* Fires all together. If one fails, fires them one by one and puts the failing one aside. */
static enum err schedules_turn(struct background *b, struct tx *tx, struct problem *p)
{
    struct schedules_slice s = {.most = SCHEDULES_PER_TURN_MAX, .next = -1};
    enum err e = work_transaction(&b->env, tx, fire_schedules, &s, p);
    bool one_by_one = e != ERR_OK && !err_is_outage(e);
    s.most = 1;
    for (int64_t n = 0; one_by_one && n < SCHEDULES_PER_TURN_MAX; n++) {
        e = work_transaction(&b->env, tx, fire_schedules, &s, p);
        if (e != ERR_OK && !err_is_outage(e)) {
            LOG(LOG_ERROR, "a schedule cannot be fired and is put aside",
                LOG_Z("error", err_code(e)), LOG_Z("why", p->detail));
            metric_add(b->failures, STR("schedules"), STR_NONE, 1);
            s.aside_ms = put_aside_ms(&b->aside, str_hash(str_of(p->detail)) | 1);
            s.why = e;
            (void)snprintf(s.detail, sizeof(s.detail), "%s", p->detail);
            e = work_transaction(&b->env, tx, put_schedule_aside, &s, p);
        }
        one_by_one = e == ERR_OK && s.fired;
    }
    if (e == ERR_OK)
        b->next_schedule = s.next;
    return e;
}

/* --- slices with a pause between them --- */

static int64_t until_mono(const struct background *b, enum work_kind kind, int64_t mono)
{
    return b->kinds[kind].more ? 0 : MAX(b->kinds[kind].at - mono, (int64_t)0);
}

/* After a slice: the next one runs at once if there is more, else after the pause. */
static void note_slice(struct background *b, enum work_kind kind, bool more, int64_t pause_ms)
{
    b->kinds[kind].more = more;
    b->kinds[kind].at = b->mono_ms + pause_ms;
}

#define WAIT_OF(name, kind)                                                            \
    static int64_t name(const struct background *b, const struct tx *tx, int64_t mono) \
    {                                                                                  \
        (void)tx;                                                                      \
        return until_mono(b, kind, mono);                                              \
    }

#define WAIT_UNLESS_ALL_IS_KEPT(name, kind)                                            \
    static int64_t name(const struct background *b, const struct tx *tx, int64_t mono) \
    {                                                                                  \
        (void)tx;                                                                      \
        return b->keeps_all ? INT64_MAX : until_mono(b, kind, mono);                   \
    }

WAIT_OF(counts_wait, WORK_COUNTS)
WAIT_OF(keys_wait, WORK_KEYS)
WAIT_OF(requeue_wait, WORK_REQUEUE)
WAIT_OF(deliveries_wait, WORK_DELIVERIES)
WAIT_UNLESS_ALL_IS_KEPT(retention_wait, WORK_RETENTION)
WAIT_UNLESS_ALL_IS_KEPT(feed_wait, WORK_FEED)
WAIT_UNLESS_ALL_IS_KEPT(generations_wait, WORK_GENERATIONS)

static enum err write_counts(void *ctx, struct tx *tx, struct problem *p)
{
    struct background *b = ctx;
    (void)p;
    enum err e = replay_stats_flush(b->stats, tx->db);
    if (e == ERR_OK)
        e = window_stats_flush(tx->window_stats, tx->db, tx->now_ms);
    return e == ERR_OK ? fan_out_keep(&b->fan_out, tx) : e;
}

static enum err counts_turn(struct background *b, struct tx *tx, struct problem *p)
{
    enum err e = work_transaction(&b->env, tx, write_counts, b, p);
    note_slice(b, WORK_COUNTS, false, IDEM_STATS_FLUSH_MS);
    return e;
}

/* --- counts by the minute --- */

static int64_t minutes_wait(const struct background *b, const struct tx *tx, int64_t mono)
{
    (void)tx;
    if (b->minutes == NULL)
        return INT64_MAX;
    int64_t due = minute_stats_due_at(b->minutes, b->env.now_ms);
    return MIN(until_wall(b, due), until_mono(b, WORK_MINUTES, mono));
}

struct minutes_slice {
    struct minute_stats *minutes;
    bool closing; /* the minute that is not over yet too */
    int64_t rows; /* stored, or removed */
};

static enum err store_minute(void *ctx, struct tx *tx, struct problem *p)
{
    struct minutes_slice *s = ctx;
    (void)p;
    return minute_stats_store(s->minutes, tx->db, tx->now_ms, s->closing, &s->rows);
}

static enum err drop_old(void *ctx, struct tx *tx, struct problem *p)
{
    struct minutes_slice *s = ctx;
    int64_t sessions = 0;
    (void)p;
    enum err e = minutes_drop(tx->db, tx->now_ms / MINUTE_MS - MINUTES_OF_DAY, STATS_ROWS_PER_TURN,
                              &s->rows);
    if (e == ERR_OK)
        e = ended_sessions_drop(tx->db, tx->now_ms, STATS_ROWS_PER_TURN, &sessions);
    s->rows += sessions;
    return e;
}

/* Stores first; old minutes, and sessions whose time has come, are removed when there is nothing to
 * store. */
static enum err minutes_turn(struct background *b, struct tx *tx, struct problem *p)
{
    struct minutes_slice s = {.minutes = b->minutes};
    enum err e = work_transaction(&b->env, tx, store_minute, &s, p);
    if (e == ERR_OK && s.rows > 0)
        minute_stats_stored(b->minutes, s.rows);
    else if (e == ERR_OK)
        e = work_transaction(&b->env, tx, drop_old, &s, p);
    note_slice(b, WORK_MINUTES, e == ERR_OK && s.rows > 0, STATS_SWEEP_PAUSE_MS);
    return e;
}

static enum err store_minutes(struct background *b, struct tx *tx, struct problem *p)
{
    struct minutes_slice s = {.minutes = b->minutes, .closing = true};
    enum err e = ERR_OK;
    do {
        e = work_transaction(&b->env, tx, store_minute, &s, p);
        if (e == ERR_OK)
            minute_stats_stored(b->minutes, s.rows);
    } while (e == ERR_OK && s.rows > 0);
    return e;
}

enum err background_store_counts(struct background *b, struct tx *tx, int64_t now_ms)
{
    struct problem p;
    problem_init(&p);
    b->env.now_ms = now_ms;
    enum err e = work_transaction(&b->env, tx, write_counts, b, &p);
    if (e == ERR_OK && b->minutes != NULL)
        e = store_minutes(b, tx, &p);
    problem_release(&p);
    return e;
}

/* --- slices --- */

/* The slices below set `more` when one slice was not enough. */
struct slice {
    struct background *b;
    bool more;
};

static enum err evict_keys(void *ctx, struct tx *tx, struct problem *p)
{
    struct slice *s = ctx;
    int64_t evicted = 0;
    (void)p;
    enum err e = idempotency_evict(tx->db, tx->now_ms, EVICT_PER_TURN_MAX, &evicted);
    s->more = evicted == EVICT_PER_TURN_MAX;
    return e;
}

static enum err remove_old_runs(void *ctx, struct tx *tx, struct problem *p)
{
    struct slice *s = ctx;
    (void)p;
    return retention_slice(&s->b->retention, tx, &s->more);
}

static enum err sweep_feed(void *ctx, struct tx *tx, struct problem *p)
{
    struct slice *s = ctx;
    (void)p;
    return feed_hold_sweep(tx, &s->more);
}

static enum err sweep_generations(void *ctx, struct tx *tx, struct problem *p)
{
    struct slice *s = ctx;
    (void)p;
    return entity_sweep_slice(&s->b->entity_sweep, tx, &s->more);
}

static enum err requeue(void *ctx, struct tx *tx, struct problem *p)
{
    struct slice *s = ctx;
    (void)p;
    return entity_requeue_slice(tx, &s->more);
}

static enum err sweep_deliveries(void *ctx, struct tx *tx, struct problem *p)
{
    struct slice *s = ctx;
    (void)p;
    return delivery_log_slice(&s->b->delivery_log, tx, &s->more);
}

static enum err run_slice(struct background *b, struct tx *tx, enum work_kind kind, work_fn *fn,
                          int64_t pause_ms, struct problem *p)
{
    struct slice s = {.b = b};
    enum err e = work_transaction(&b->env, tx, fn, &s, p);
    note_slice(b, kind, e == ERR_OK && s.more, pause_ms);
    return e;
}

static enum err keys_turn(struct background *b, struct tx *tx, struct problem *p)
{
    return run_slice(b, tx, WORK_KEYS, evict_keys, IDEM_STATS_FLUSH_MS, p);
}

static enum err retention_turn(struct background *b, struct tx *tx, struct problem *p)
{
    enum err e = run_slice(b, tx, WORK_RETENTION, remove_old_runs, RETENTION_PAUSE_MS, p);
    if (e != ERR_OK && !err_is_outage(e))
        retention_skip(&b->retention);
    return e;
}

static enum err feed_turn(struct background *b, struct tx *tx, struct problem *p)
{
    return run_slice(b, tx, WORK_FEED, sweep_feed, FEED_SWEEP_PAUSE_MS, p);
}

static enum err generations_turn(struct background *b, struct tx *tx, struct problem *p)
{
    /* After a failure the next slice continues after the entity that failed. */
    return run_slice(b, tx, WORK_GENERATIONS, sweep_generations, IDEM_STATS_FLUSH_MS, p);
}

static enum err requeue_turn(struct background *b, struct tx *tx, struct problem *p)
{
    return run_slice(b, tx, WORK_REQUEUE, requeue, IDEM_STATS_FLUSH_MS, p);
}

static enum err deliveries_turn(struct background *b, struct tx *tx, struct problem *p)
{
    enum err e = run_slice(b, tx, WORK_DELIVERIES, sweep_deliveries, DELIVERIES_SWEEP_PAUSE_MS, p);
    if (e != ERR_OK && !err_is_outage(e))
        b->delivery_log.skips = true;
    return e;
}

/* --- indexes --- */

static bool indexing_is_due(const struct tx *tx)
{
    return tx_runs_index_is_due(tx) || job_timers_want_fold(tx);
}

static int64_t indexes_wait(const struct background *b, const struct tx *tx, int64_t mono)
{
    return indexing_is_due(tx) ? 0 : until_mono(b, WORK_INDEXES, mono);
}

static enum err fill_index_of_runs(void *ctx, struct tx *tx, struct problem *p)
{
    int64_t last = 0;
    (void)ctx;
    (void)p;
    enum err e = tx_last_num(tx, &last);
    if (e == ERR_OK)
        e = recent_runs_index(tx->recent_runs, tx->db, last);
    if (e == ERR_OK) {
        tx->pending->runs_unindexed = 0;
        tx->pending->holders_sought = false;
        tx->nums->runs_through = -1;
    }
    return e;
}

static enum err fold_timers(void *ctx, struct tx *tx, struct problem *p)
{
    (void)ctx;
    (void)p;
    return job_timers_fold(tx);
}

/* Under load one of them in a turn: both take a few milliseconds, and requests wait meanwhile.
 * After the pause, and when the server starts, both, since neither has much to do and others wait
 * for both: retention finds old runs in the index. */
static enum err indexes_turn(struct background *b, struct tx *tx, struct problem *p)
{
    bool under_load = until_mono(b, WORK_INDEXES, b->mono_ms) > 0;
    bool only_runs = under_load && tx_runs_index_is_due(tx);
    bool only_timers = under_load && !only_runs && job_timers_want_fold(tx);
    enum err e = ERR_OK;
    if (!only_timers)
        e = work_transaction(&b->env, tx, fill_index_of_runs, NULL, p);
    if (e == ERR_OK && !only_runs)
        e = work_transaction(&b->env, tx, fold_timers, NULL, p);
    note_slice(b, WORK_INDEXES, false, IDEM_STATS_FLUSH_MS);
    return e;
}

/* --- segments of keys --- */

static int64_t segments_wait(const struct background *b, const struct tx *tx, int64_t mono)
{
    return idem_keys_work_is_due(tx->keys) ? until_mono(b, WORK_SEGMENTS, mono) : INT64_MAX;
}

static enum err work_on_segments(void *ctx, struct tx *tx, struct problem *p)
{
    (void)ctx;
    (void)p;
    return idem_keys_work(tx->keys, tx->db);
}

static enum err segments_turn(struct background *b, struct tx *tx, struct problem *p)
{
    enum err e = work_transaction(&b->env, tx, work_on_segments, NULL, p);
    note_slice(b, WORK_SEGMENTS, false, KEY_WORK_PAUSE_MS);
    return e;
}

/* --- queued runs --- */

static int64_t queued_wait(const struct background *b, const struct tx *tx, int64_t mono)
{
    (void)mono;
    return dispatch_is_due(tx) ? 0 : until_wall(b, dispatch_aside_until(tx));
}

static enum err start_queued(void *ctx, struct tx *tx, struct problem *p)
{
    (void)ctx;
    return dispatch_turn(tx, p);
}

struct failed_start {
    int64_t run;
    enum err why;
    char detail[PROBLEM_DETAIL_MAX];
};

static enum err fail_queued(void *ctx, struct tx *tx, struct problem *p)
{
    const struct failed_start *f = ctx;
    return run_txn_give_up(tx, f->run, f->why, f->detail, p);
}

/* A queued run that cannot start fails. If that is impossible too, its tenant's queue is put aside.
 */
static enum err queued_turn(struct background *b, struct tx *tx, struct problem *p)
{
    dispatch_bring_back(tx, b->env.now_ms);
    enum err e = work_transaction(&b->env, tx, start_queued, NULL, p);
    if (e == ERR_OK || err_is_outage(e) || b->env.tenant == 0)
        return e;
    struct failed_start f = {.run = b->env.run, .why = e};
    int64_t tenant = b->env.tenant;
    (void)snprintf(f.detail, sizeof(f.detail), "%s", p->detail);
    LOG(LOG_ERROR, "a queued run cannot start", LOG_N("run", f.run), LOG_Z("error", err_code(e)),
        LOG_Z("why", f.detail));
    metric_add(b->failures, STR("dispatch"), STR_NONE, 1);
    if (f.run != 0)
        e = work_transaction(&b->env, tx, fail_queued, &f, p);
    if (e != ERR_OK && !err_is_outage(e)) {
        int64_t ms = put_aside_ms(&b->aside, (uint64_t)tenant);
        dispatch_set_aside(tx, tenant, b->env.now_ms + ms);
        e = ERR_OK;
    }
    return e;
}

/* --- webhooks --- */

static int64_t webhooks_wait(const struct background *b, const struct tx *tx, int64_t mono)
{
    return fan_out_is_behind(&b->fan_out, tx) ? until_mono(b, WORK_WEBHOOKS, mono) : INT64_MAX;
}

static enum err fan_out(void *ctx, struct tx *tx, struct problem *p)
{
    struct background *b = ctx;
    (void)p;
    return fan_out_slice(&b->fan_out, tx);
}

static enum err webhooks_turn(struct background *b, struct tx *tx, struct problem *p)
{
    enum err e = work_transaction(&b->env, tx, fan_out, b, p);
    note_slice(b, WORK_WEBHOOKS, fan_out_is_behind(&b->fan_out, tx), FAN_OUT_PAUSE_MS);
    return e;
}

/* --- the table --- */

struct work {
    const char *name;
    /* The time until there is work; 0: there is some. INT64_MAX: only an event brings work. */
    int64_t (*wait)(const struct background *b, const struct tx *tx, int64_t mono);
    /* Runs one slice, in its own transactions. */
    enum err (*turn)(struct background *b, struct tx *tx, struct problem *p);
};

static const struct work WORK[] = {
#define X(symbol, name, functions) [symbol] = {name, functions##_wait, functions##_turn},
    BACKGROUND_WORK(X)
#undef X
};

/* --- all kinds --- */

enum err background_init(struct background *b, struct db *db, struct replay_stats *stats,
                         struct minute_stats *minutes, struct metric *failures)
{
    *b = (struct background){.stats = stats, .minutes = minutes, .failures = failures};
    for (enum work_kind kind = 0; kind < WORK_COUNT; kind++)
        metric_add(failures, str_of(WORK[kind].name), STR_NONE, 0);
    enum err e = minutes != NULL ? minute_stats_open(minutes, db) : ERR_OK;
    if (e == ERR_OK)
        e = timers_next(db, &b->timers.next);
    return e == ERR_OK ? schedules_next(db, &b->next_schedule) : e;
}

static bool note_sooner(int64_t *due, int64_t due_at)
{
    if (due_at < 0 || (*due >= 0 && due_at >= *due))
        return false;
    *due = due_at;
    return true;
}

bool background_note_due(struct background *b, int64_t due_at)
{
    /* The effect does not say which of the two it is: both check. */
    bool timer = note_sooner(&b->timers.next, due_at);
    return note_sooner(&b->next_schedule, due_at) || timer;
}

static int64_t wait_of(const struct background *b, const struct tx *tx, enum work_kind kind,
                       int64_t mono)
{
    int64_t retry = MAX(b->kinds[kind].retry_at - mono, (int64_t)0);
    return MAX(WORK[kind].wait(b, tx, mono), retry);
}

static void note_failure(struct background *b, enum work_kind kind, enum err e,
                         const struct problem *p)
{
    /* After an outage, such as a full disk, retry soon; after any other failure wait longer. */
    int64_t delay = RETRY_MS;
    if (!err_is_outage(e)) {
        delay <<= MIN(b->kinds[kind].failed, (int64_t)5);
        b->kinds[kind].failed++;
    }
    b->kinds[kind].retry_at = b->mono_ms + MIN(delay, (int64_t)RETRY_MS_MAX);
    metric_add(b->failures, str_of(WORK[kind].name), STR_NONE, 1);
    LOG(LOG_WARN, "background work failed and will be tried again", LOG_Z("work", WORK[kind].name),
        LOG_Z("error", err_code(e)), LOG_Z("why", p->detail));
}

/* Each kind that is due has a turn, until their time is up: then those that are left come first the
 * next time. */
enum err background_run(struct background *b, struct tx *tx, int64_t now_ms, int64_t mono_ms)
{
    b->env.now_ms = now_ms;
    b->mono_ms = mono_ms;
    enum err outage = ERR_OK;
    struct problem p;
    problem_init(&p);
    tx->turn_until_ms = env_mono_ms(tx->env) + BACKGROUND_MS_MAX;
    enum work_kind first = b->first;
    for (int i = 0; i < WORK_COUNT && outage != ERR_STORE_FAILED && !tx_turn_is_over(tx); i++) {
        enum work_kind kind = (enum work_kind)(((int)first + i) % WORK_COUNT);
        b->first = (enum work_kind)(((int)kind + 1) % WORK_COUNT);
        if (wait_of(b, tx, kind, b->mono_ms) > 0)
            continue;
        enum err e = WORK[kind].turn(b, tx, &p);
        if (e == ERR_OK)
            b->kinds[kind].failed = b->kinds[kind].retry_at = 0;
        else
            note_failure(b, kind, e, &p);
        if (err_is_outage(e) && (outage == ERR_OK || e == ERR_STORE_FAILED))
            outage = e;
        problem_clear(&p);
    }
    if (!tx_turn_is_over(tx))
        b->first = 0;
    tx->turn_until_ms = INT64_MAX;
    problem_release(&p);
    return outage;
}

bool background_is_wanted(const struct background *b, const struct tx *tx)
{
    return indexing_is_due(tx) || dispatch_is_due(tx) || fan_out_is_behind(&b->fan_out, tx);
}

int64_t background_wait_ms(struct background *b, const struct tx *tx, int64_t now_ms,
                           int64_t mono_ms)
{
    int64_t wait = INT64_MAX;
    b->env.now_ms = now_ms;
    for (enum work_kind kind = 0; kind < WORK_COUNT; kind++)
        wait = MIN(wait, wait_of(b, tx, kind, mono_ms));
    return wait;
}
