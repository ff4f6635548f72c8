/* What the feed's readers still need. */
#include "core/txn/feed_hold.h"

#include "base/limits.h"
#include "store/outbox/feed.h"
#include "store/run/timers.h"
#include "store/tenants.h"

#include <stdlib.h>

static enum err lower_to_mark(struct tx *tx, struct str name, bool must_be_there, int64_t *through)
{
    bool found = false;
    int64_t mark = 0;
    enum err e = feed_mark_get(tx->db, name, &found, &mark);
    if (e == ERR_OK && (found || must_be_there))
        *through = MIN(*through, mark);
    return e;
}

/* Every reader has handled the rows up to *ret_through; *ret_end is the last row. The mark of the
 * bus counts only while a bus is configured. */
static enum err handled_through(struct tx *tx, int64_t *ret_through, int64_t *ret_end)
{
    enum err e = tx_feed_end(tx, ret_end);
    if (e != ERR_OK)
        return e;
    *ret_through = *ret_end;
    if (tx->has_bus) {
        e = lower_to_mark(tx, FEED_MARK_BUS, true, ret_through);
        if (e != ERR_OK)
            return e;
    }
    return lower_to_mark(tx, FEED_MARK_WEBHOOKS, false, ret_through);
}

enum err feed_hold_sweep(struct tx *tx, bool *ret_more)
{
    int64_t through = 0;
    int64_t end = 0;
    int64_t removed = 0;
    int64_t timers = 0;
    int64_t counters = 0;
    enum err e = handled_through(tx, &through, &end);
    if (e == ERR_OK)
        e = timers_folded_through(tx->db, &timers);
    if (e == ERR_OK)
        e = counters_folded_through(tx->db, &counters);
    if (e != ERR_OK)
        return e;
    e = feed_sweep(tx->db, tx->now_ms - FEED_KEPT_MS, MIN(through, MIN(timers, counters)),
                   FEED_SWEPT_PER_TURN_MAX, &removed);
    if (e != ERR_OK)
        return e;
    *ret_more = removed == FEED_SWEPT_PER_TURN_MAX;
    return ERR_OK;
}

static bool hold(void *ctx, const struct feed_row *row)
{
    struct held_runs *held = ctx;
    held->runs[held->count++] = (struct held_run){row->owner, row->first_seq};
    return held->count < FEED_HELD_RUNS_MAX;
}

static int by_run_and_seq(const void *a, const void *b)
{
    const struct held_run *x = a;
    const struct held_run *y = b;
    if (x->run != y->run)
        return x->run < y->run ? -1 : 1;
    return (x->first_seq > y->first_seq) - (x->first_seq < y->first_seq);
}

enum err feed_hold_runs(struct tx *tx, struct held_runs *ret)
{
    int64_t through = 0;
    int64_t end = 0;
    *ret = (struct held_runs){0};
    enum err e = handled_through(tx, &through, &end);
    if (e != ERR_OK || through >= end)
        return e;
    ret->all = end - through > FEED_HELD_RUNS_MAX;
    if (ret->all)
        return ERR_OK;
    ret->runs = arena_alloc(&tx->arena, FEED_HELD_RUNS_MAX * sizeof(*ret->runs));
    if (ret->runs == NULL)
        return ERR_NO_MEMORY;
    e = feed_list(tx->db, through, FEED_HELD_RUNS_MAX, hold, ret);
    if (e != ERR_OK)
        return e;
    qsort(ret->runs, ret->count, sizeof(*ret->runs), by_run_and_seq);
    return ERR_OK;
}

int64_t feed_held_from(const struct held_runs *held, int64_t run)
{
    size_t low = 0;
    size_t high = held->count;
    if (held->all)
        return 0;
    while (low < high) { /* find the first row of this run, or its place */
        size_t middle = low + (high - low) / 2;
        if (held->runs[middle].run < run)
            low = middle + 1;
        else
            high = middle;
    }
    bool held_back = low < held->count && held->runs[low].run == run;
    return held_back ? held->runs[low].first_seq : INT64_MAX;
}

bool feed_holds_run(const struct held_runs *held, int64_t run)
{
    return feed_held_from(held, run) != INT64_MAX;
}
