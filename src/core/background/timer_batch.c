/* Firing the timers that are due. */
#include "core/background/timer_batch.h"

#include "base/log.h"
#include "core/background/timer_fire.h"
#include "core/run/run_control.h"
#include "core/run/run_txn.h"
#include "core/txn/job_timers.h"
#include "core/usecase/execute.h"

static enum err find_next(struct timer_batch *b, struct tx *tx)
{
    return job_timers_next(tx, &b->found_next);
}

/* --- together --- */

static enum err load_due(struct timer_batch *b, struct tx *tx)
{
    b->others_count = 0;
    enum err e = job_timers_fold_due(tx);
    if (e == ERR_OK)
        e = timers_due(tx->db, tx->now_ms, TIMERS_PER_TURN_MAX, b->due, &b->count);
    if (e != ERR_OK || b->count < TIMERS_PER_TURN_MAX)
        return e;
    return timer_turns_search(&b->search, tx->db, tx->now_ms, b->due, b->count, b->others,
                              &b->others_count);
}

/* Mixes all timers so that tenants take turns. */
static size_t mix(const struct timer_batch *b, const struct timer **out)
{
    const struct timer *all[TIMERS_PER_TURN_MAX + TIMERS_SINGLED_OUT_MAX];
    size_t count = 0;
    for (size_t i = 0; i < b->count; i++)
        all[count++] = &b->due[i];
    for (size_t i = 0; i < b->others_count; i++)
        all[count++] = &b->others[i];
    timer_turns_mix(all, count, out);
    return count;
}

static enum err fire_together(void *ctx, struct tx *tx, struct problem *p)
{
    struct timer_batch *b = ctx;
    const struct timer *timers[TIMERS_PER_TURN_MAX + TIMERS_SINGLED_OUT_MAX];
    b->tried = false;
    enum err e = load_due(b, tx);
    size_t count = e == ERR_OK ? mix(b, timers) : 0;
    /* Timers past these bounds stay due and fire in the next slice. */
    int64_t rows_max = tx_changes(tx) + TIMERS_ROWS_PER_TURN_MAX;
    size_t loaded = 0;
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        if (i > 0 && (loaded > TIMERS_BYTES_PER_TURN_MAX || tx_changes(tx) > rows_max ||
                      tx_turn_is_over(tx)))
            break;
        b->tried = true;
        struct arena_mark mark = arena_mark(&tx->arena);
        e = timer_fire(tx, timers[i], p);
        loaded += tx->arena.used;
        if (e == ERR_OK)
            arena_back_to(&tx->arena, mark);
    }
    return e == ERR_OK ? find_next(b, tx) : e;
}

/* --- one by one --- */

static enum err look(void *ctx, struct tx *tx, struct problem *p)
{
    struct timer_batch *b = ctx;
    (void)p;
    enum err e = job_timers_fold_due(tx);
    if (e == ERR_OK)
        e = timers_due(tx->db, tx->now_ms, b->alone, b->due, &b->count);
    return e == ERR_OK ? find_next(b, tx) : e;
}

/* One timer that is fired alone. */
struct alone {
    struct timer_batch *batch;
    const struct timer *timer;
    int64_t until_ms;
    enum err why;
};

static enum err fire_alone(void *ctx, struct tx *tx, struct problem *p)
{
    const struct alone *a = ctx;
    enum err e = timer_fire(tx, a->timer, p);
    return e == ERR_OK ? find_next(a->batch, tx) : e;
}

static enum err give_up_run(void *ctx, struct tx *tx, struct problem *p)
{
    const struct alone *a = ctx;
    enum err e = run_txn_give_up(tx, a->timer->owner, a->why,
                                 "The run exceeds the memory limit per operation", p);
    if (e == ERR_OK)
        e = timers_delete(tx->db, a->timer);
    return e == ERR_OK ? find_next(a->batch, tx) : e;
}

static enum err postpone(void *ctx, struct tx *tx, struct problem *p)
{
    const struct alone *a = ctx;
    struct timer later = *a->timer;
    (void)p;
    later.due_at = a->until_ms;
    enum err e = timers_delete(tx->db, a->timer);
    if (e == ERR_OK)
        e = timers_insert(tx->db, &later);
    return e == ERR_OK ? find_next(a->batch, tx) : e;
}

/* A timer that cannot be fired must not delay the others. */
static enum err deal_with(struct alone *a, struct work_env *w, struct tx *tx,
                          struct put_aside *aside, struct problem *p)
{
    LOG(LOG_ERROR, "a timer cannot be fired", LOG_N("run", a->timer->owner),
        LOG_N("ordinal", a->timer->ordinal), LOG_Z("error", err_code(a->why)),
        LOG_Z("why", p->detail));
    if (a->why == ERR_TOO_LARGE && work_transaction(w, tx, give_up_run, a, p) == ERR_OK)
        return ERR_OK;
    uint64_t what = (uint64_t)a->timer->owner * 31 + (uint64_t)a->timer->ordinal + 1;
    a->until_ms = tx->now_ms + put_aside_ms(aside, what);
    return work_transaction(w, tx, postpone, a, p);
}

/* Fires one timer in its own transaction, and deals with a failure. */
static enum err fire_one(struct timer_batch *b, const struct timer *timer, struct work_env *w,
                         struct tx *tx, struct put_aside *aside, struct problem *p,
                         int64_t *ret_failed)
{
    struct alone a = {.batch = b, .timer = timer};
    a.why = work_transaction(w, tx, fire_alone, &a, p);
    if (a.why == ERR_OK || err_is_outage(a.why))
        return a.why;
    ++*ret_failed;
    return deal_with(&a, w, tx, aside, p);
}

static enum err fire_one_by_one(struct timer_batch *b, struct work_env *w, struct tx *tx,
                                struct put_aside *aside, struct problem *p, int64_t *ret_failed)
{
    int64_t rows_max = tx_changes(tx) + TIMERS_ROWS_PER_TURN_MAX;
    enum err e = work_transaction(w, tx, look, b, p);
    if (e == ERR_OK && b->count == 0)
        b->alone = 0;
    for (size_t i = 0; i < b->count && e == ERR_OK; i++) {
        if (i > 0 && (tx_changes(tx) > rows_max || tx_turn_is_over(tx)))
            break;
        e = fire_one(b, &b->due[i], w, tx, aside, p, ret_failed);
        b->alone -= e == ERR_OK;
    }
    return e;
}

enum err timer_batch_turn(struct timer_batch *b, struct work_env *w, struct tx *tx,
                          struct put_aside *aside, struct problem *p, int64_t *ret_failed)
{
    enum err e = ERR_OK;
    if (b->alone == 0) {
        e = work_transaction(w, tx, fire_together, b, p);
        if (e != ERR_OK && !err_is_outage(e) && b->tried) {
            b->alone = b->count;
            e = ERR_OK;
            for (size_t i = 0; i < b->others_count && e == ERR_OK; i++)
                e = fire_one(b, &b->others[i], w, tx, aside, p, ret_failed);
        }
    }
    if (e == ERR_OK && b->alone > 0)
        e = fire_one_by_one(b, w, tx, aside, p, ret_failed);
    if (e == ERR_OK)
        b->next = b->found_next;
    return e;
}
