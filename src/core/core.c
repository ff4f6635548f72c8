/* The deterministic core: batches of operations, and background work. */
#include "core/core.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/awaited_runs.h"
#include "core/background/background.h"
#include "core/run/run_view.h"
#include "core/usecase/execute.h"
#include "store/run/jobs.h"

struct core {
    struct core_config config;
    struct tx tx;
    struct background background;
    bool disk_full;
    bool failed;
    bool sooner; /* a timer was armed that is due before all known ones */

    /* The present call. */
    struct core_call call;
    int64_t now_ms;
    struct chance chance;
    struct env env; /* its clock and randomness, for ids and delays */
    enum err outage;
    bool grows;                       /* ops that come meanwhile are of the next transaction too */
    bool joins;                       /* waiting claims may join the next transaction */
    bool claims_committed;            /* with that transaction */
    struct op *claims, **claims_last; /* those that have joined */
    size_t claim_count;
};

/* --- the environment of a call --- */

static int64_t call_now_us(void *ctx)
{
    return ((const struct core *)ctx)->call.now_us;
}

static int64_t meter_ns(void *ctx)
{
    return env_mono_ns(((const struct core *)ctx)->config.meter);
}

static void call_random(void *ctx, void *out, size_t len)
{
    chance_take(&((struct core *)ctx)->chance, out, len);
}

/* Between calls no transaction is open, and its memory is released. */
static void assert_core(const struct core *c)
{
    assert(effects_transaction_is_over(&c->tx.effects));
    assert(c->tx.kept == NULL && c->tx.freed == NULL);
    assert(c->tx.arena.used == 0 && c->tx.notes.used == 0);
    assert(tenant_cache_is_flushed(c->tx.tenants));
    (void)c;
}

static void begin_call(struct core *c, const struct core_call *call)
{
    assert_core(c);
    assert(effects_are_empty(&c->tx.effects)); /* the effects of the last call were published */
    assert(c->claims == NULL);                 /* and its claims taken */
    c->call = *call;
    c->now_ms = call->now_us / 1000;
    c->outage = ERR_OK;
    chance_init(&c->chance, &call->seed);
}

/* Background work has to know the timers that were armed; the rest is counted by the minute. */
static void note_effect(struct core *c, const struct effect *x)
{
    struct minute_stats *minutes = c->config.minutes;
    switch ((int)x->kind) {
    case EFFECT_TIMER_ARMED:
        c->sooner |= background_note_due(&c->background, x->timer_at);
        return;
    case EFFECT_RUN_MADE:
        minute_stats_count(minutes, x->tenant, MINUTE_STARTS, c->now_ms);
        return;
    case EFFECT_RUN_ENDED:
        minute_stats_count(minutes, x->tenant, minute_figure_of_end(x->decided.status), c->now_ms);
        return;
    case EFFECT_QUEUE_WAIT:
        minute_stats_count_wait(minutes, x->tenant, x->admission.wait_ms, c->now_ms);
        return;
    default:
        return;
    }
}

static void end_call(struct core *c)
{
    for (const struct effect *x = c->tx.effects.first; x != NULL; x = x->next)
        note_effect(c, x);
    tx_end(&c->tx);
    assert_core(c);
}

/* --- answers --- */

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
        return "The disk is full. Nothing was changed.";
    case ERR_STORE_FAILED:
        return "Storage failed; the outcome is unknown. Retry with the same key.";
    case ERR_NO_MEMORY:
        return "Out of memory. Nothing was changed.";
    case ERR_TOO_LARGE:
        return "The operation exceeds the memory limit per operation. Nothing was changed.";
    case ERR_STORE_BUSY:
        return "The store is busy. Nothing was changed.";
    case ERR_DAMAGED:
        return "A stored object that the change needs is damaged. Nothing was changed. The "
               "server's log and `pawl doctor` name the object.";
    default:
        return "The change failed. Nothing was changed.";
    }
}

void core_in_doubt(struct op *op)
{
    op_clear_result(op);
    op->err = problem_set(&op->problem, ERR_STORE_FAILED, "%s", why_of(ERR_STORE_FAILED));
}

/* --- waiting claims --- */

/* Keeps the memory of one op from adding to that of the next. */
static enum err execute_in_batch(struct core *c, struct op *op)
{
    struct arena_mark mark = arena_mark(&c->tx.arena);
    enum err e = execute_op(op, &c->tx);
    if (e == ERR_OK)
        arena_back_to(&c->tx.arena, mark);
    return e;
}

/* An op of this transaction, or a claim that has joined it, may have the job already. A job that
 * cannot be read is left to the effect. */
static enum err note_leased(struct core *c, struct effect *x)
{
    struct arena_mark mark = arena_mark(&c->tx.arena);
    struct job job;
    bool found = false;
    enum err e =
        jobs_find_at(c->tx.db, x->ready.owner, x->ready.ordinal, &c->tx.arena, &found, &job);
    x->ready.leased = e == ERR_OK && (!found || job.state != JOB_PENDING);
    arena_back_to(&c->tx.arena, mark);
    return err_is_outage(e) && e != ERR_NO_MEMORY ? e : ERR_OK;
}

static struct op *take_claim(struct core *c, const struct effect *x)
{
    if (c->claim_count >= CLAIMS_PER_COMMIT_MAX)
        return NULL;
    struct op *op = c->config.claims.take(c->config.claims.ctx, x->tenant, x->ready.queue);
    if (op == NULL)
        return NULL;
    op->next = NULL;
    *c->claims_last = op;
    c->claims_last = &op->next;
    c->claim_count++;
    return op;
}

/* Claims take jobs in their own order, which need not begin with this one: the effect is over only
 * when this very job is leased. Otherwise it wakes a claim after the commit. */
static enum err lease_ready_job(struct core *c, struct effect *x)
{
    struct op *op = NULL;
    enum err e;
    do {
        e = note_leased(c, x);
        op = e == ERR_OK && !x->ready.leased ? take_claim(c, x) : NULL;
        if (op != NULL)
            e = execute_in_batch(c, op);
    } while (e == ERR_OK && op != NULL && op->answer.handed.len > 0);
    return e;
}

/* The jobs that this transaction has made ready go to claims that wait for them. */
static enum err join_claims(struct core *c)
{
    enum err e = ERR_OK;
    for (struct effect *x = *c->tx.effects.begun; x != NULL && e == ERR_OK; x = x->next) {
        if (atomic_load(c->config.claims.waiting) == 0)
            break;
        if (x->kind == EFFECT_JOB_READY)
            e = lease_ready_job(c, x);
    }
    return e;
}

/* Callers that wait for the end of a run get it with the effect: what it takes to show it is in
 * memory now. */
static enum err show_ended_runs(struct core *c)
{
    enum err e = ERR_OK;
    if (c->config.awaited_runs == NULL)
        return ERR_OK;
    for (struct effect *x = *c->tx.effects.begun; x != NULL && e == ERR_OK; x = x->next) {
        if (x->kind == EFFECT_RUN_ENDED &&
            awaited_runs_may_have(c->config.awaited_runs, x->decided.key))
            e = run_show_ended(&c->tx, x);
    }
    return e;
}

struct op *core_take_claims(struct core *c)
{
    struct op *first = c->claims;
    c->claims = NULL;
    c->claims_last = &c->claims;
    c->claim_count = 0;
    return first;
}

/* --- one batch --- */

/* How one attempt at a batch ended. */
struct outcome {
    enum err err;
    struct op *culprit; /* the op that failed; NULL: none failed */
    bool
        dispatch_failed; /* no op failed, but a queued run that was taking a slot that they freed */
};

/* Runs all ops in one transaction, with those that come meanwhile, and commits. After an error
 * nothing was changed, except that the outcome of ERR_STORE_FAILED is unknown. */
static struct outcome try_batch(struct core *c, struct op *first, bool dispatches_later)
{
    struct tx *tx = &c->tx;
    struct outcome out = {.err = ERR_OK};
    bool joins = c->joins;
    bool grows = c->grows;
    c->joins = c->grows = false;
    tx_start(tx, c->now_ms);
    tx->dispatches_later = dispatches_later;
    out.err = db_begin(tx->db);
    if (out.err != ERR_OK)
        return out;
    for (struct op *op = first; op != NULL && out.err == ERR_OK; op = op->next) {
        if (op->use_case->sees_counts)
            out.err = replay_stats_flush(c->config.stats, tx->db);
        if (out.err == ERR_OK)
            out.err = execute_in_batch(c, op);
        if (out.err != ERR_OK)
            out.culprit = op;
        else if (grows && op->next == NULL)
            op->next = c->call.more.take(c->call.more.ctx);
    }
    if (out.err == ERR_OK && joins)
        out.err = join_claims(c);
    if (out.err == ERR_OK)
        out.err = show_ended_runs(c);
    if (out.err == ERR_OK)
        out.err = tx_commit(tx);
    c->claims_committed |= joins && out.err == ERR_OK;
    out.dispatch_failed = tx->dispatch_failed;
    if (out.err != ERR_OK) {
        db_rollback(tx->db);
        tx_rolled_back(tx);
    }
    return out;
}

/* A queued run that cannot start must not fail the ops that freed its slot. */
static struct outcome try_batch_apart(struct core *c, struct op *first)
{
    struct outcome out = try_batch(c, first, false);
    return out.dispatch_failed && !err_is_outage(out.err) ? try_batch(c, first, true) : out;
}

void core_note_failure(struct core *c, enum err e)
{
    if (err_is_outage(e) && (c->outage == ERR_OK || e == ERR_STORE_FAILED))
        c->outage = e;
    if (e == ERR_STORE_FULL && !c->disk_full)
        LOG(LOG_ERROR, "the disk is full: changes are refused");
    c->disk_full |= e == ERR_STORE_FULL;
    if (e != ERR_STORE_FAILED)
        return;
    LOG(LOG_ERROR, "the store failed: no more changes are acknowledged, stopping");
    c->failed = true;
}

/* For a log that must not grow: answers replays and refuses everything else. */
static void answer_without_writing(struct core *c, struct op *first)
{
    for (struct op *op = first; op != NULL; op = op->next) {
        tx_start(&c->tx, c->now_ms);
        bool known = false;
        if (db_begin(c->tx.db) == ERR_OK) {
            known = op->idem.key.len > 0 && execute_op(op, &c->tx) == ERR_OK &&
                    (op->answer.replayed || op->err == ERR_IDEM_KEY_REUSED);
            db_rollback(c->tx.db);
            tx_rolled_back(&c->tx);
        }
        if (known) {
            count_answer(op, c->config.stats, c->config.minutes, c->tx.now_ms);
            continue;
        }
        op_clear_result(op);
        op->err = problem_set(&op->problem, ERR_STORE_BUSY,
                              "A reader outside pawl keeps the write-ahead log from shrinking");
    }
}

static void run_batch(struct core *c, struct op *first);

/* Runs the part of the list before `end`, which stays linked to it. */
static void run_until(struct core *c, struct op *first, const struct op *end)
{
    if (first == end)
        return;
    struct op **cut = &first->next;
    while (*cut != end)
        cut = &(*cut)->next;
    struct op *rest = *cut;
    *cut = NULL;
    run_batch(c, first);
    *cut = rest;
}

/* If one op failed the batch, the ops before it, that op, and the ops after it run as three
 * batches. If no op did, or the store has an outage such as a full disk, each op runs alone: a
 * replay needs no room and gets its answer. */
static void run_apart(struct core *c, struct op *first, const struct outcome *out)
{
    if (out->culprit != NULL && !err_is_outage(out->err)) {
        run_until(c, first, out->culprit);
        run_until(c, out->culprit, out->culprit->next);
        run_until(c, out->culprit->next, NULL);
        return;
    }
    for (struct op *op = first; op != NULL; op = op->next)
        run_until(c, op, op->next);
}

static void fail_batch(struct core *c, struct op *first, enum err e)
{
    if (e == ERR_INTERNAL && first->next == NULL)
        LOG(LOG_ERROR,
            "a bug: a request failed after it had changed something, and was rolled back",
            LOG_Z("use_case", first->use_case->name), LOG_Z("error", err_code(first->err)),
            LOG_Z("why", first->problem.detail));
    fail_all(first, e, why_of(e));
    core_note_failure(c, e);
}

static void note_committed(struct core *c, struct op *first)
{
    if (c->disk_full)
        LOG(LOG_INFO, "the disk has room again");
    c->disk_full = false;
    for (const struct op *op = first; op != NULL; op = op->next)
        count_answer(op, c->config.stats, c->config.minutes, c->tx.now_ms);
}

/* Decides every op of the list. */
static void run_batch(struct core *c, struct op *first)
{
    if (c->failed) {
        fail_all(first, ERR_STORE_FAILED, why_of(ERR_STORE_FAILED));
        return;
    }
    if (c->call.log_full) {
        answer_without_writing(c, first);
        return;
    }
    bool alone;
    struct outcome out;
    do {
        out = try_batch_apart(c, first);
        alone = first->next == NULL;
    } while (out.err != ERR_OK && alone && first->runs_again && !err_is_outage(out.err));
    if (out.err == ERR_OK) {
        note_committed(c, first);
        return;
    }
    if (!alone && out.err != ERR_STORE_FAILED)
        run_apart(c, first, &out);
    else
        fail_batch(c, first, out.err);
}

/* --- calls --- */

enum err core_apply(struct core *c, const struct core_call *call, struct op *first)
{
    begin_call(c, call);
    c->joins = call->claims_join && c->config.claims.take != NULL;
    c->grows = call->more.take != NULL;
    c->claims_committed = false;
    if (first != NULL)
        run_batch(c, first);
    c->joins = c->grows = false;
    if (c->claims != NULL && !c->claims_committed) /* they joined what was rolled back */
        run_batch(c, c->claims);
    end_call(c);
    return c->outage;
}

enum err core_background(struct core *c, const struct core_call *call)
{
    begin_call(c, call);
    c->sooner = false;
    if (!c->failed)
        core_note_failure(c, background_run(&c->background, &c->tx, c->now_ms, call->mono_ms));
    end_call(c);
    return c->outage;
}

enum err core_store_counts(struct core *c, const struct core_call *call)
{
    begin_call(c, call);
    if (!c->failed)
        core_note_failure(c, background_store_counts(&c->background, &c->tx, c->now_ms));
    end_call(c);
    return c->outage;
}

int64_t core_background_wait_ms(struct core *c, int64_t now_ms, int64_t mono_ms)
{
    return background_wait_ms(&c->background, &c->tx, now_ms, mono_ms);
}

bool core_wants_background(const struct core *c)
{
    return c->sooner || background_is_wanted(&c->background, &c->tx);
}

struct idem_keys *core_keys(struct core *c)
{
    return c->tx.keys;
}

struct effects *core_effects(struct core *c)
{
    return &c->tx.effects;
}

bool core_failed(const struct core *c)
{
    return c->failed;
}

/* --- life --- */

enum err core_open(const struct core_config *config, const struct core_call *call,
                   struct problem *p, struct core **ret)
{
    struct core *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    c->config = *config;
    c->claims_last = &c->claims;
    c->call = *call;
    c->env = (struct env){call_now_us, meter_ns, call_random, c};
    chance_init(&c->chance, &call->seed);
    enum err e = tx_init(&c->tx, config->db, &c->env);
    c->tx.has_gate = config->has_gate;
    c->tx.has_bus = config->has_bus;
    c->tx.exports_spans = config->exports_spans;
    c->tx.polls = config->polls;
    if (e == ERR_OK)
        e = background_init(&c->background, config->db, config->stats, config->minutes,
                            config->cleanup_failures);
    c->background.keeps_all = config->keeps_all;
    if (e != ERR_OK) {
        core_close(c);
        return problem_set(p, e, "Cannot read the store");
    }
    *ret = c;
    return ERR_OK;
}

void core_close(struct core *c)
{
    if (c == NULL)
        return;
    tx_release(&c->tx);
    free(c);
}
