/* The commit loop: one writer, many callers, one fsync per batch. */
#include "runtime/writer.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/background/background.h"
#include "core/usecase/execute.h"
#include "core/usecase/use_cases.h"

#include <errno.h>
#include <pthread.h>

enum { IDLE_WAIT_MS_MAX = 1000 }; /* a wall clock that jumps is noticed within this time */

struct writer {
    struct writer_config config;
    pthread_t thread;
    bool thread_runs;

    pthread_mutex_t turn; /* held while the connection is in use */
    struct tx tx;
    struct background background;
    bool disk_full;
    bool sooner; /* a timer comes before the time that the writer sleeps until */
    struct db_backup *backup;
    struct op *backup_op;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t filled;
    struct op *first, **last;
    struct op *done_first, **done_last;
    struct effect_parcel *parcels, **parcels_last;
    bool nudged;
    bool stopping;

    atomic_bool idle;
    atomic_bool failed;
    atomic_bool log_full;
    atomic_llong log_bytes;
};

/* --- giving back --- */

static void publish(struct writer *l, struct op *first, struct effect_parcel *parcels)
{
    if (first == NULL && parcels == NULL)
        return;
    pthread_mutex_lock(&l->lock);
    bool was_empty = l->done_first == NULL && l->parcels == NULL;
    *l->done_last = first;
    while (*l->done_last != NULL)
        l->done_last = &(*l->done_last)->next;
    *l->parcels_last = parcels;
    while (*l->parcels_last != NULL)
        l->parcels_last = &(*l->parcels_last)->next;
    pthread_mutex_unlock(&l->lock);
    if (was_empty)
        wake_loop(l->config.receivers.event_fd);
}

/* Hands out the effects of what is committed; returns those for the loop. */
static struct effect_parcel *hand_out_effects(struct writer *l)
{
    int64_t timer_at = -1;
    struct effect_parcel *parcel =
        publish_committed(&l->config.receivers, &l->tx.effects, &timer_at);
    l->sooner |= background_note_due(&l->background, timer_at);
    return parcel;
}

static void fail_all(struct op *first, enum err e, const char *why)
{
    for (struct op *op = first; op != NULL; op = op->next) {
        op_clear_result(op);
        op->err = problem_set(&op->problem, e, "%s", why);
    }
}

static const char *why_of(enum err e)
{
    switch ((int)e) {
    case ERR_STORE_FULL:
        return "the disk is full: nothing was changed";
    case ERR_STORE_FAILED:
        return "the store failed: whether the change was kept is not known, retry with the same "
               "key";
    case ERR_NO_MEMORY:
        return "out of memory: nothing was changed";
    case ERR_TOO_LARGE:
        return "this needs more memory than one operation may take: nothing was changed";
    case ERR_STORE_BUSY:
        return "the store is busy: nothing was changed";
    case ERR_DAMAGED:
        return "a stored object that the change needs is damaged: nothing was changed. The "
               "server's log names it, and so does `pawl doctor`";
    default:
        return "the change could not be made: nothing was changed";
    }
}

/* --- one batch --- */

/* How one go at a batch ended. */
struct outcome {
    enum err err;
    struct op *culprit;   /* the op that failed; NULL: none of them did */
    bool dispatch_failed; /* not the ops did, but a queued run that was to take a slot they freed */
};

/* Begins, runs all, commits. An error means that nothing of it happened, or (STORE_FAILED) that
 * nobody knows. */
static struct outcome try_batch(struct writer *l, struct op *first, bool dispatches_later)
{
    struct tx *tx = &l->tx;
    struct outcome out = {.err = ERR_OK};
    tx_start(tx);
    tx->dispatches_later = dispatches_later;
    out.err = db_begin(tx->db);
    if (out.err != ERR_OK)
        return out;
    for (struct op *op = first; op != NULL && out.err == ERR_OK; op = op->next) {
        struct arena_mark mark = arena_mark(&tx->arena);
        if (op->use_case->sees_counts)
            out.err = replay_stats_flush(l->config.stats, tx->db);
        if (out.err == ERR_OK)
            out.err = execute_op(op, tx);
        if (out.err == ERR_OK)
            arena_back_to(&tx->arena, mark);
        else
            out.culprit = op;
    }
    if (out.err == ERR_OK)
        out.err = tx_commit(tx);
    out.dispatch_failed = tx->dispatch_failed;
    if (out.err != ERR_OK)
        db_rollback(tx->db);
    tx_leave_gates(tx);
    if (out.err != ERR_OK)
        tx_rolled_back(tx);
    return out;
}

/* Queued runs that cannot start are no business of the ops that made room for them. */
static struct outcome try_batch_apart(struct writer *l, struct op *first)
{
    struct outcome out = try_batch(l, first, false);
    return out.dispatch_failed && !is_outage(out.err) ? try_batch(l, first, true) : out;
}

static void count_all_known(struct writer *l, struct op *first)
{
    for (const struct op *op = first; op != NULL; op = op->next)
        count_known(op, l->config.stats, l->tx.now_ms);
}

static void note_failure(struct writer *l, enum err e)
{
    if (e == ERR_STORE_FULL && !l->disk_full)
        LOG(LOG_ERROR, "the disk is full: changes are refused");
    l->disk_full |= e == ERR_STORE_FULL;
    if (e != ERR_STORE_FAILED)
        return;
    LOG(LOG_ERROR, "the store failed: nothing more is acknowledged, stopping");
    atomic_store(&l->failed, true);
}

/* The log may not grow: replays are answered all the same, everything else is refused. */
static void answer_without_writing(struct writer *l, struct op *first)
{
    for (struct op *op = first; op != NULL; op = op->next) {
        tx_start(&l->tx);
        bool known = false;
        if (db_begin(l->tx.db) == ERR_OK) {
            known = op->idem.key.len > 0 && execute_op(op, &l->tx) == ERR_OK &&
                    (op->answer.replayed || op->err == ERR_IDEM_KEY_REUSED);
            db_rollback(l->tx.db);
            tx_leave_gates(&l->tx);
            tx_rolled_back(&l->tx);
        }
        if (known) {
            count_known(op, l->config.stats, l->tx.now_ms);
            continue;
        }
        op_clear_result(op);
        op->err = problem_set(&op->problem, ERR_STORE_BUSY,
                              "a reader outside pawl keeps the write-ahead log from shrinking");
    }
}

static void run_batch(struct writer *l, struct op *first);

/* The list up to `end`, which stays linked behind it. */
static void run_until(struct writer *l, struct op *first, const struct op *end)
{
    if (first == end)
        return;
    struct op **cut = &first->next;
    while (*cut != end)
        cut = &(*cut)->next;
    struct op *rest = *cut;
    *cut = NULL;
    run_batch(l, first);
    *cut = rest;
}

/* One op broke the batch: those before it, that op, and those behind it go each for themselves. Or
 * nobody did, but there is no room for all: alone each gets what it deserves, and a replay, which
 * needs no room, gets its answer. */
static void run_apart(struct writer *l, struct op *first, const struct outcome *out)
{
    if (out->culprit != NULL && !is_outage(out->err)) {
        run_until(l, first, out->culprit);
        run_until(l, out->culprit, out->culprit->next);
        run_until(l, out->culprit->next, NULL);
        return;
    }
    for (struct op *op = first; op != NULL; op = op->next)
        run_until(l, op, op->next);
}

static void fail_batch(struct writer *l, struct op *first, enum err e)
{
    if (e == ERR_INTERNAL && first->next == NULL)
        LOG(LOG_ERROR, "a bug: a request failed half-way and was rolled back",
            LOG_Z("use_case", first->use_case->name), LOG_Z("error", err_code(first->err)),
            LOG_Z("why", first->problem.detail));
    fail_all(first, e, why_of(e));
    note_failure(l, e);
}

static void note_committed(struct writer *l, struct op *first, int64_t begun_ns)
{
    double count = 0;
    for (const struct op *op = first; op != NULL; op = op->next)
        count++;
    if (l->disk_full)
        LOG(LOG_INFO, "the disk has room again");
    l->disk_full = false;
    count_all_known(l, first);
    double seconds = (double)(env_mono_ns(l->config.env) - begun_ns) / 1e9;
    metric_observe(l->config.commit_seconds, STR_NONE, STR_NONE, seconds);
    metric_observe(l->config.batch_size, STR_NONE, STR_NONE, count);
}

/* The turn is held. Every op of the list is decided when it returns, and nothing is published yet.
 */
static void run_batch(struct writer *l, struct op *first)
{
    if (atomic_load(&l->failed)) {
        fail_all(first, ERR_STORE_FAILED, why_of(ERR_STORE_FAILED));
        return;
    }
    if (atomic_load(&l->log_full)) {
        answer_without_writing(l, first);
        return;
    }
    bool alone = first->next == NULL;
    struct outcome out;
    int64_t begun;
    do {
        begun = env_mono_ns(l->config.env);
        out = try_batch_apart(l, first);
    } while (out.err != ERR_OK && alone && first->runs_again && !is_outage(out.err));
    if (out.err == ERR_OK) {
        note_committed(l, first, begun);
        return;
    }
    if (!alone && out.err != ERR_STORE_FAILED)
        run_apart(l, first, &out);
    else
        fail_batch(l, first, out.err);
}

/* --- backup --- */

/* A backup is no part of a batch: split_backups() takes it out before. */
static enum err not_in_a_batch(struct op *op, struct tx *tx)
{
    (void)tx;
    assert(!"a backup in a batch");
    return problem_set(&op->problem, ERR_INTERNAL, "a backup is no part of a batch");
}

const struct use_case UC_BACKUP = {.name = "backup", .write = not_in_a_batch};

static void backup_over(struct writer *l, enum err e)
{
    struct op *op = l->backup_op;
    char path[DB_PATH_MAX];
    enum err ended = db_backup_end(l->backup, path);
    l->backup = NULL;
    l->backup_op = NULL;
    if (e == ERR_OK)
        e = ended;
    if (e == ERR_OK)
        buf_put(&op->answer.body, str_of(path));
    else
        op->err = problem_set(&op->problem, e, "the copy could not be finished");
    publish(l, op, NULL);
}

static void backup_begin(struct writer *l, struct op *op)
{
    op_clear_result(op);
    if (l->backup != NULL)
        op->err = problem_set(&op->problem, ERR_STORE_BUSY, "another backup is being made");
    else if (!db_has_backup(l->tx.db))
        op->err = problem_set(&op->problem, ERR_BAD_REQUEST,
                              "%s has no online backup here: use the database's own tools",
                              db_engine_name(l->tx.db));
    else
        op->err = db_backup_begin(l->tx.db, &op->problem, &l->backup);
    if (op->err != ERR_OK)
        publish(l, op, NULL);
    else
        l->backup_op = op;
}

static void backup_step(struct writer *l)
{
    if (l->backup == NULL)
        return;
    bool done = false;
    enum err e = db_backup_step(l->backup, &done);
    if (e != ERR_OK || done)
        backup_over(l, e);
}

/* Takes backups out of the list, which then holds only what one transaction can do. */
static struct op *split_backups(struct writer *l, struct op *first)
{
    struct op **at = &first;
    while (*at != NULL) {
        struct op *op = *at;
        if (op->use_case == &UC_BACKUP) {
            *at = op->next;
            op->next = NULL;
            backup_begin(l, op);
        } else {
            at = &op->next;
        }
    }
    return first;
}

/* --- turns --- */

static void housekeep(struct writer *l)
{
    if (!db_has_log(l->tx.db))
        return;
    enum err e = db_housekeep(l->tx.db);
    bool full = e == ERR_STORE_BUSY;
    if (full != atomic_load(&l->log_full)) {
        LOG(full ? LOG_WARN : LOG_INFO, full ? "the write-ahead log is full: refusing writes"
                                             : "the write-ahead log has shrunk: taking writes");
        atomic_store(&l->log_full, full);
    }
    note_failure(l, e);
    atomic_store(&l->log_bytes, db_log_bytes(l->tx.db));
}

/* What the writer does besides callers' work. */
static void do_background(struct writer *l)
{
    if (atomic_load(&l->failed))
        return;
    note_failure(l, background_run(&l->background, &l->tx));
    publish(l, NULL, hand_out_effects(l));
    backup_step(l);
    housekeep(l);
}

/* Up to OPS_PER_COMMIT_MAX of what waits. The lock is held. */
static struct op *take_waiting(struct writer *l)
{
    struct op *first = l->first;
    struct op *op = first;
    for (size_t n = 1; op != NULL && n < OPS_PER_COMMIT_MAX && op->next != NULL; n++)
        op = op->next;
    if (op != NULL) {
        l->first = op->next;
        op->next = NULL;
    }
    if (l->first == NULL)
        l->last = &l->first;
    return first;
}

static void wait_for_work(struct writer *l, int64_t ms)
{
    struct timespec until = env_wait_until(ms);
    while (l->first == NULL && !l->stopping && !l->nudged) {
        if (pthread_cond_timedwait(&l->filled, &l->lock, &until) == ETIMEDOUT)
            break;
    }
    l->nudged = false;
}

static void *writer_main(void *ctx)
{
    struct writer *l = ctx;
    int64_t wait_ms = 0;
    for (;;) {
        pthread_mutex_lock(&l->lock);
        atomic_store_explicit(&l->idle, l->first == NULL, memory_order_relaxed);
        wait_for_work(l, wait_ms);
        atomic_store_explicit(&l->idle, false, memory_order_relaxed);
        struct op *first = take_waiting(l);
        bool over = l->stopping && first == NULL;
        pthread_mutex_unlock(&l->lock);
        if (over)
            break;
        pthread_mutex_lock(&l->turn);
        first = split_backups(l, first);
        if (first != NULL) {
            run_batch(l, first);
            publish(l, first, hand_out_effects(l));
        }
        l->sooner = false;
        do_background(l);
        wait_ms = l->backup != NULL
                      ? 0
                      : MIN(background_wait_ms(&l->background, &l->tx), (int64_t)IDLE_WAIT_MS_MAX);
        pthread_mutex_unlock(&l->turn);
    }
    pthread_mutex_lock(&l->turn);
    if (l->backup != NULL)
        backup_over(l, ERR_DRAINING);
    pthread_mutex_unlock(&l->turn);
    return NULL;
}

/* --- the HTTP loop's side --- */

static void nudge(struct writer *l)
{
    pthread_mutex_lock(&l->lock);
    l->nudged = true;
    pthread_cond_signal(&l->filled);
    pthread_mutex_unlock(&l->lock);
}

void writer_push(struct writer *l, struct op *first)
{
    pthread_mutex_lock(&l->lock);
    assert(!l->stopping);
    bool was_empty = l->first == NULL;
    *l->last = first;
    while (*l->last != NULL)
        l->last = &(*l->last)->next;
    if (was_empty)
        pthread_cond_signal(&l->filled);
    pthread_mutex_unlock(&l->lock);
}

bool writer_try_inline(struct writer *l, struct op *op)
{
    assert(op->next == NULL && op->use_case != &UC_BACKUP);
    if (pthread_mutex_trylock(&l->turn) != 0)
        return false;
    pthread_mutex_lock(&l->lock);
    bool alone = l->first == NULL;
    pthread_mutex_unlock(&l->lock);
    if (alone) {
        run_batch(l, op);
        publish(l, NULL, hand_out_effects(l));
        /* The writer sleeps until a time it knew of before this turn, and background work is its
         * own.
         */
        if (l->sooner || background_is_wanted(&l->background, &l->tx) ||
            db_wants_housekeeping(l->tx.db))
            nudge(l);
    }
    pthread_mutex_unlock(&l->turn);
    return alone;
}

void writer_collect(struct writer *l, struct op **ret_ops, struct effect_parcel **ret_parcels)
{
    pthread_mutex_lock(&l->lock);
    *ret_ops = l->done_first;
    *ret_parcels = l->parcels;
    l->done_first = NULL;
    l->done_last = &l->done_first;
    l->parcels = NULL;
    l->parcels_last = &l->parcels;
    pthread_mutex_unlock(&l->lock);
}

bool writer_is_idle(struct writer *l)
{
    return atomic_load_explicit(&l->idle, memory_order_relaxed);
}

bool writer_failed(struct writer *l)
{
    return atomic_load(&l->failed);
}

bool writer_log_full(struct writer *l)
{
    return atomic_load(&l->log_full);
}

int64_t writer_log_bytes(struct writer *l)
{
    return atomic_load(&l->log_bytes);
}

/* --- life --- */

static void init_locks(struct writer *l)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->filled, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->turn, NULL);
}

enum err writer_start(const struct writer_config *config, struct problem *p, struct writer **ret)
{
    struct writer *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return problem_set(p, ERR_NO_MEMORY, "no memory for the commit loop");
    l->config = *config;
    l->last = &l->first;
    l->done_last = &l->done_first;
    l->parcels_last = &l->parcels;
    init_locks(l);
    enum err e = tx_init(&l->tx, config->db, config->env);
    l->tx.gate = config->gate;
    l->tx.has_bus = config->receivers.relay != NULL;
    l->tx.polls = config->polls;
    if (e == ERR_OK)
        e = background_init(&l->background, config->db, config->stats, config->env,
                            config->cleanup_failures);
    l->background.keeps_all = config->keeps_all;
    if (e == ERR_OK && pthread_create(&l->thread, NULL, writer_main, l) != 0)
        e = ERR_NO_MEMORY;
    if (e != ERR_OK) {
        writer_free(l);
        return problem_set(p, e, "cannot start the writer");
    }
    l->thread_runs = true;
    *ret = l;
    return ERR_OK;
}

void writer_stop(struct writer *l)
{
    if (!l->thread_runs)
        return;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_signal(&l->filled);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    l->thread_runs = false;
}

void writer_free(struct writer *l)
{
    if (l == NULL)
        return;
    writer_stop(l);
    while (l->parcels != NULL) {
        struct effect_parcel *old = l->parcels;
        l->parcels = old->next;
        effect_parcel_free(old);
    }
    tx_release(&l->tx);
    pthread_mutex_destroy(&l->turn);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->filled);
    free(l);
}
