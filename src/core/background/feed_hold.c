/* What must be kept for those who follow the feed and are behind. */
#include "core/background/feed_hold.h"

#include "base/limits.h"
#include "core/background/fan_out.h"
#include "outbound/relay.h"
#include "store/outbox/feed.h"

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

/* Everybody has been told of the rows up to *ret_told; *ret_end is the last. A bus that is not
 * configured holds nothing back, wherever it once was. */
static enum err told_through(struct tx *tx, int64_t *ret_told, int64_t *ret_end)
{
    enum err e = fan_out_end_of_feed(tx, ret_end);
    *ret_told = *ret_end;
    if (e == ERR_OK && tx->unpublished_events != NULL)
        e = lower_to_mark(tx, RELAY_MARK, true, ret_told);
    return e == ERR_OK ? lower_to_mark(tx, FAN_OUT_MARK, false, ret_told) : e;
}

enum err feed_hold_sweep(struct tx *tx, bool *ret_more)
{
    int64_t told = 0;
    int64_t end = 0;
    int64_t removed = 0;
    enum err e = told_through(tx, &told, &end);
    if (e == ERR_OK)
        e = feed_sweep(tx->db, tx->now_ms - FEED_KEPT_MS, told, FEED_SWEPT_PER_TURN_MAX, &removed);
    *ret_more = removed == FEED_SWEPT_PER_TURN_MAX;
    return e;
}

static bool hold(void *ctx, const struct feed_row *row)
{
    struct held_runs *held = ctx;
    held->runs[held->count++] = (struct held_run){row->run, row->first_seq};
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
    int64_t told = 0;
    int64_t end = 0;
    *ret = (struct held_runs){0};
    enum err e = told_through(tx, &told, &end);
    if (e != ERR_OK || told >= end)
        return e;
    ret->all = end - told > FEED_HELD_RUNS_MAX;
    if (ret->all)
        return ERR_OK;
    ret->runs = arena_alloc(&tx->arena, FEED_HELD_RUNS_MAX * sizeof(*ret->runs));
    if (ret->runs == NULL)
        return ERR_NO_MEMORY;
    e = feed_list(tx->db, told, FEED_HELD_RUNS_MAX, hold, ret);
    qsort(ret->runs, ret->count, sizeof(*ret->runs), by_run_and_seq);
    return e;
}

int64_t feed_held_from(const struct held_runs *held, int64_t run)
{
    size_t low = 0;
    size_t high = held->count;
    if (held->all)
        return 0;
    while (low < high) { /* to the first of this run, or where it would be */
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
