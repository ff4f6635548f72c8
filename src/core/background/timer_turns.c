/* Whose timer is next. */
#include "core/background/timer_turns.h"

#include "base/limits.h"

#include <assert.h>
#include <stdlib.h>

/* A power of two, at least twice as many as there are timers in one turn. */
enum { SLOTS = 1024, TIMERS_MAX = TIMERS_PER_TURN_MAX + TIMERS_SINGLED_OUT_MAX };
_Static_assert(SLOTS >= 2 * TIMERS_MAX, "a search for a free slot must end");

/* How many timers each tenant has in a turn. Not a base/hash_map: it lives on the stack and
 * allocates nothing. */
struct tally {
    struct {
        bool taken;
        int64_t tenant;
        int64_t count;
    } slots[SLOTS];
};

static int64_t *count_of(struct tally *t, int64_t tenant)
{
    size_t slot = (uint64_t)tenant * 0x9E3779B97F4A7C15u >> 32 & (SLOTS - 1);
    while (t->slots[slot].taken && t->slots[slot].tenant != tenant)
        slot = (slot + 1) & (SLOTS - 1);
    t->slots[slot].taken = true;
    t->slots[slot].tenant = tenant;
    return &t->slots[slot].count;
}

static bool is_behind(const struct timer *a, const struct timer *b)
{
    return timer_order(a, b) > 0;
}

struct found {
    struct tally tally;
    const struct timer *end; /* of the front */
    struct timer *out;
    size_t count;
    struct timer last;
    int64_t looked_at;
};

static bool is_found(const struct found *f, const struct timer *timer)
{
    for (size_t i = 0; i < f->count; i++) {
        if (timer_order(&f->out[i], timer) == 0)
            return true;
    }
    return false;
}

static bool consider(void *ctx, const struct timer *timer)
{
    struct found *f = ctx;
    f->last = *timer;
    f->looked_at++;
    int64_t *of_tenant = count_of(&f->tally, timer->tenant);
    if (*of_tenant < TIMERS_SINGLED_OUT_TENANT_MAX && !is_found(f, timer)) {
        ++*of_tenant;
        f->out[f->count++] = *timer;
    }
    return f->count < TIMERS_SINGLED_OUT_MAX;
}

static bool consider_latest(void *ctx, const struct timer *timer)
{
    const struct found *f = ctx;
    return is_behind(timer, f->end) && consider(ctx, timer);
}

static int by_time(const void *a, const void *b)
{
    return timer_order(a, b);
}

/* Goes on where the last search ended. */
static enum err search_on(struct timer_search *search, struct db *db, int64_t now_ms,
                          struct found *f)
{
    struct timer from = is_behind(&search->at, f->end) ? search->at : *f->end;
    f->looked_at = 0;
    enum err e = timers_due_after(db, now_ms, &from, TIMERS_SEARCHED_MAX, consider, f);
    if (e != ERR_OK)
        return e;
    bool at_the_end = f->looked_at < TIMERS_SEARCHED_MAX && f->count < TIMERS_SINGLED_OUT_MAX;
    search->at = f->last;
    if (at_the_end)
        search->at = (struct timer){0};
    return ERR_OK;
}

enum err timer_turns_search(struct timer_search *search, struct db *db, int64_t now_ms,
                            const struct timer *front, size_t front_count, struct timer *out,
                            size_t *ret_count)
{
    assert(front_count > 0);
    struct found f = {.end = &front[front_count - 1], .out = out};
    for (size_t i = 0; i < front_count; i++)
        *count_of(&f.tally, front[i].tenant) = TIMERS_SINGLED_OUT_TENANT_MAX;
    enum err e = timers_due_latest(db, now_ms, TIMERS_LATEST_SEARCHED_MAX, consider_latest, &f);
    if (e == ERR_OK && f.count < TIMERS_SINGLED_OUT_MAX)
        e = search_on(search, db, now_ms, &f);
    if (e != ERR_OK)
        return e;
    qsort(out, f.count, sizeof(*out), by_time);
    *ret_count = f.count;
    return ERR_OK;
}

void timer_turns_mix(const struct timer *const *timers, size_t count, const struct timer **out)
{
    assert(count <= TIMERS_MAX);
    struct tally tally = {0};
    int64_t turn[TIMERS_MAX]; /* the how manieth of its tenant */
    int64_t turns = 0;
    for (size_t i = 0; i < count; i++) {
        turn[i] = (*count_of(&tally, timers[i]->tenant))++;
        turns = MAX(turns, turn[i] + 1);
    }
    size_t place[TIMERS_MAX + 1] = {0}; /* where each turn's timers begin */
    for (size_t i = 0; i < count; i++)
        place[turn[i] + 1]++;
    for (int64_t i = 1; i <= turns; i++)
        place[i] += place[i - 1];
    for (size_t i = 0; i < count; i++)
        out[place[turn[i]]++] = timers[i];
}
