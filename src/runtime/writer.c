/* The writer: many callers, one commit per batch. */
#include "runtime/writer.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/usecase/use_cases.h"
#include "runtime/settler.h"

#include <errno.h>
#include <pthread.h>

enum { IDLE_WAIT_MS_MAX = 1000 }; /* the writer notices a jump of the wall clock within this time */

struct writer {
    struct writer_config config;
    pthread_t thread;
    bool thread_runs;

    pthread_mutex_t turn; /* held while the connection is in use */
    struct core *core;
    struct settler *settler;
    struct db_backup *backup;
    struct op *backup_op;
    int64_t batch_begun_ns; /* of the present batch, or the last one */
    size_t batch_ops;

    pthread_mutex_t lock; /* guards everything below up to `failed` */
    pthread_cond_t filled;
    struct op *first, **last;
    bool nudged;
    bool stopping;

    atomic_bool failed;
    atomic_bool log_full;
    atomic_llong log_bytes;
};

/* --- calls of the core --- */

static struct core_call call_now(struct writer *l)
{
    const struct env *env = l->config.core.meter;
    struct core_call call = {
        .now_us = env->now_us(env->ctx),
        .mono_ms = env_mono_ms(env),
        .log_full = atomic_load(&l->log_full),
    };
    env_random(env, &call.seed, sizeof(call.seed));
    return call;
}

static size_t count_ops(const struct op *op)
{
    size_t count = 0;
    for (; op != NULL; op = op->next)
        count++;
    return count;
}

/* A sync may have failed since the last call. */
static void note_failed_sync(struct writer *l)
{
    if (atomic_load(&l->config.durability->marks.failed) && !core_failed(l->core))
        core_note_failure(l->core, ERR_STORE_FAILED);
}

/* The caller holds the turn. Decides every op of the list, and those from `more`, which it appends;
 * none of them leaves yet. Returns the waiting claims that were decided with them. */
MUST_CHECK static struct op *run_batch(struct writer *l, struct op *first, struct op_source more)
{
    l->batch_begun_ns = env_mono_ns(l->config.core.meter);
    l->batch_ops = count_ops(first);
    note_failed_sync(l);
    struct core_call call = call_now(l);
    call.claims_join = true;
    call.more = more;
    enum err e = core_apply(l->core, &call, first);
    atomic_store(&l->failed, core_failed(l->core));
    for (struct op *op = first; op != NULL; op = op->next)
        op->batch_begun_ns = 0;
    struct op *claims = core_take_claims(l->core);
    if (e != ERR_OK || call.log_full)
        return claims;
    first->batch_begun_ns = l->batch_begun_ns;
    metric_observe(l->config.batch_size, STR_NONE, STR_NONE, (double)l->batch_ops);
    return claims;
}

/* The ops leave before the effects of their commit are published, also those that wait again: one
 * of these effects may be what they wait for. */
static void leave_when_durable(struct writer *l, struct op *first)
{
    settler_add(l->settler, first, effects_take(core_effects(l->core)));
}

static struct op *join_lists(struct op *first, struct op *others)
{
    struct op **last = &first;
    while (*last != NULL)
        last = &(*last)->next;
    *last = others;
    return first;
}

/* --- backup --- */

/* Never called: split_backups() takes backups out of every batch. */
static enum err not_in_a_batch(struct op *op, struct tx *tx)
{
    (void)tx;
    assert(!"a backup in a batch");
    return problem_set(&op->problem, ERR_INTERNAL, "A backup cannot be part of a batch");
}

const struct use_case UC_BACKUP = {.name = "backup", .write = not_in_a_batch};

static void return_op(struct writer *l, struct op *op)
{
    op->batch_begun_ns = 0;
    settler_add(l->settler, op, NULL);
    settler_sync_soon(l->settler);
}

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
        op->err = problem_set(&op->problem, e, "The copy could not be finished");
    return_op(l, op);
}

static void backup_begin(struct writer *l, struct op *op)
{
    op_clear_result(op);
    if (l->backup != NULL)
        op->err = problem_set(&op->problem, ERR_STORE_BUSY, "Another backup is already running");
    else if (!db_has_backup(l->config.core.db))
        op->err = problem_set(&op->problem, ERR_BAD_REQUEST,
                              "%s has no online backup: use the database's own tools",
                              db_engine_name(l->config.core.db));
    else
        op->err = db_backup_begin(l->config.core.db, &op->problem, &l->backup);
    if (op->err != ERR_OK)
        return_op(l, op);
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

/* Takes backups out of the list. All other ops can run in one transaction. */
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
    if (!db_has_log(l->config.core.db))
        return;
    enum err e = db_housekeep(l->config.core.db);
    bool full = e == ERR_STORE_BUSY;
    if (full != atomic_load(&l->log_full)) {
        LOG(full ? LOG_WARN : LOG_INFO, full ? "the write-ahead log is full: refusing writes"
                                             : "the write-ahead log has shrunk: taking writes");
        atomic_store(&l->log_full, full);
    }
    core_note_failure(l->core, e);
    atomic_store(&l->failed, core_failed(l->core));
    atomic_store(&l->log_bytes, db_log_bytes(l->config.core.db));
}

/* The writer's own work, between the batches of callers. */
static void do_background(struct writer *l)
{
    if (writer_failed(l))
        return;
    struct core_call call = call_now(l);
    (void)core_background(l->core, &call);
    atomic_store(&l->failed, core_failed(l->core));
    settler_add(l->settler, NULL, effects_take(core_effects(l->core)));
    settler_sync_soon(l->settler);
    backup_step(l);
    housekeep(l);
}

/* The last that it does. */
static void store_counts(struct writer *l)
{
    if (writer_failed(l) || writer_log_full(l))
        return;
    struct core_call call = call_now(l);
    if (core_store_counts(l->core, &call) != ERR_OK)
        LOG(LOG_WARN, "the counts of the last minute could not be stored");
    atomic_store(&l->failed, core_failed(l->core));
    settler_add(l->settler, NULL, effects_take(core_effects(l->core)));
    settler_sync_soon(l->settler);
}

/* How long the writer may sleep when no ops come. */
static int64_t idle_wait_ms(struct writer *l)
{
    if (writer_failed(l))
        return IDLE_WAIT_MS_MAX; /* background work is due and will not be done */
    if (l->backup != NULL)
        return 0;
    const struct env *env = l->config.core.meter;
    int64_t wait = core_background_wait_ms(l->core, env_now_ms(env), env_mono_ms(env));
    return MIN(wait, (int64_t)IDLE_WAIT_MS_MAX);
}

/* Takes the waiting ops, but at most so many. The caller holds the lock. */
static struct op *take_waiting(struct writer *l, size_t max)
{
    struct op *first = l->first;
    struct op *op = first;
    for (size_t n = 1; op != NULL && n < max && op->next != NULL; n++)
        op = op->next;
    if (op != NULL) {
        l->first = op->next;
        op->next = NULL;
    }
    if (l->first == NULL)
        l->last = &l->first;
    atomic_store(&l->config.durability->marks.work_waits, l->first != NULL);
    return first;
}

/* A backup begins between two batches. */
static bool is_backup_among(const struct op *op)
{
    while (op != NULL && op->use_case != &UC_BACKUP)
        op = op->next;
    return op != NULL;
}

/* What the HTTP loop has read meanwhile, so that a commit takes along what would wait for the next
 * one. */
static struct op *take_more(void *ctx)
{
    struct writer *l = ctx;
    int64_t age_ns = env_mono_ns(l->config.core.meter) - l->batch_begun_ns;
    if (l->batch_ops >= OPS_PER_COMMIT_MAX || age_ns > BATCH_GROWS_US_MAX * INT64_C(1000))
        return NULL;
    struct op *more = NULL;
    pthread_mutex_lock(&l->lock);
    if (!is_backup_among(l->first))
        more = take_waiting(l, OPS_PER_COMMIT_MAX - l->batch_ops);
    pthread_mutex_unlock(&l->lock);
    l->batch_ops += count_ops(more);
    return more;
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
        settler_wait(l->settler);
        pthread_mutex_lock(&l->lock);
        wait_for_work(l, wait_ms);
        struct op *first = take_waiting(l, OPS_PER_COMMIT_MAX);
        bool over = l->stopping && first == NULL;
        pthread_mutex_unlock(&l->lock);
        if (over)
            break;
        pthread_mutex_lock(&l->turn);
        first = split_backups(l, first);
        if (first != NULL) {
            struct op *claims = run_batch(l, first, (struct op_source){l, take_more});
            leave_when_durable(l, join_lists(first, claims));
            settler_sync_soon(l->settler);
        }
        do_background(l);
        wait_ms = idle_wait_ms(l);
        pthread_mutex_unlock(&l->turn);
    }
    pthread_mutex_lock(&l->turn);
    if (l->backup != NULL)
        backup_over(l, ERR_DRAINING);
    store_counts(l);
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
    atomic_store(&l->config.durability->marks.work_waits, true);
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
    bool alone = l->first == NULL && !settler_is_busy(l->settler);
    pthread_mutex_unlock(&l->lock);
    if (alone) {
        /* The op itself is answered by the caller. */
        struct op *claims = run_batch(l, op, (struct op_source){0});
        leave_when_durable(l, claims);
        op->seen = durability_seen(l->config.durability);
        settler_sync(l->settler);
        if (atomic_load(&l->config.durability->marks.durable) < op->seen)
            core_in_doubt(op);
        /* Only the writer thread does background work, and it sleeps until a time that it computed
         * before this turn. */
        if (core_wants_background(l->core) || db_wants_housekeeping(l->config.core.db))
            nudge(l);
    }
    pthread_mutex_unlock(&l->turn);
    return alone;
}

void writer_collect(struct writer *l, struct op **ret_ops, struct effect_parcel **ret_parcels)
{
    settler_collect(l->settler, ret_ops, ret_parcels);
}

struct idem_keys *writer_keys(struct writer *l)
{
    return core_keys(l->core);
}

bool writer_failed(struct writer *l)
{
    return atomic_load(&l->failed) || atomic_load(&l->config.durability->marks.failed);
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
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    l->config = *config;
    l->last = &l->first;
    init_locks(l);
    struct settler_config settler = {
        .db = config->core.db,
        .durability = config->durability,
        .env = config->core.meter,
        .receivers = config->receivers,
        .commit_seconds = config->commit_seconds,
    };
    struct core_call call = call_now(l);
    enum err e = core_open(&config->core, &call, p, &l->core);
    if (e == ERR_OK)
        e = settler_start(&settler, p, &l->settler);
    if (e == ERR_OK && pthread_create(&l->thread, NULL, writer_main, l) != 0)
        e = ERR_NO_MEMORY;
    if (e != ERR_OK) {
        writer_free(l);
        return problem_set(p, e, "Cannot start the writer");
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
    settler_stop(l->settler);
}

void writer_free(struct writer *l)
{
    if (l == NULL)
        return;
    writer_stop(l);
    settler_free(l->settler);
    core_close(l->core);
    pthread_mutex_destroy(&l->turn);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->filled);
    free(l);
}
