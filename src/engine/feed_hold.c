/* What must be kept for those who follow the feed and are behind. */
#include "engine/feed_hold.h"

#include "base/limits.h"
#include "engine/fan_out.h"
#include "engine/relay.h"
#include "store/feed.h"

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
    if (e == ERR_OK && tx->untold != NULL)
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
    held->runs[held->count++] = row->run;
    return held->count < FEED_HELD_RUNS_MAX;
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
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
    qsort(ret->runs, ret->count, sizeof(*ret->runs), by_number);
    return e;
}

bool feed_holds_run(const struct held_runs *held, int64_t run)
{
    return held->all || (held->count > 0 && bsearch(&run, held->runs, held->count,
                                                    sizeof(*held->runs), by_number) != NULL);
}
