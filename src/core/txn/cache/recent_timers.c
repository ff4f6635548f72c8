/* Timers of jobs that have no row yet. */
#include "core/txn/cache/recent_timers.h"

#include "base/pages.h"

#include <assert.h>
#include <stdlib.h>

#define POOL_BYTES (RECENT_TIMERS_MAX * sizeof(struct recent_timer))

struct recent_timers *recent_timers_new(void)
{
    struct recent_timers *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->is_lost = true;
    r->pool = pages_new(POOL_BYTES);
    if (r->pool == NULL) {
        free(r);
        return NULL;
    }
    return r;
}

void recent_timers_free(struct recent_timers *r)
{
    if (r == NULL)
        return;
    hash_map_release(&r->map);
    pages_free(r->pool, POOL_BYTES);
    free(r);
}

static void empty(struct recent_timers *r)
{
    hash_map_clear(&r->map);
    r->free = NULL;
    r->used = 0;
}

void recent_timers_forget(struct recent_timers *r)
{
    empty(r);
    r->is_lost = true;
}

void recent_timers_folded(struct recent_timers *r)
{
    empty(r);
    r->is_lost = false;
}

static struct recent_timer *of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct recent_timer, entry);
}

static uint64_t hash_of(const struct recent_timers *r, const struct timer *timer)
{
    return hash_with(hash_number(&r->map, timer->owner), (uint64_t)timer->ordinal);
}

static struct recent_timer *find(const struct recent_timers *r, const struct timer *timer)
{
    struct hash_entry *e = hash_map_find(&r->map, hash_of(r, timer));
    while (e != NULL &&
           (of(e)->timer.owner != timer->owner || of(e)->timer.ordinal != timer->ordinal))
        e = hash_map_find_next(e);
    return e != NULL ? of(e) : NULL;
}

static void drop(struct recent_timers *r, struct recent_timer *t)
{
    hash_map_remove(&r->map, &t->entry);
    t->next_free = r->free;
    r->free = t;
}

static struct recent_timer *take(struct recent_timers *r)
{
    struct recent_timer *t = r->free;
    if (t != NULL)
        r->free = t->next_free;
    else if (r->used < RECENT_TIMERS_MAX)
        t = &r->pool[r->used++];
    return t;
}

bool recent_timers_add(struct recent_timers *r, const struct timer *timer)
{
    assert(timer->ordinal > 0);
    struct recent_timer *t = find(r, timer);
    if (t != NULL)
        drop(r, t); /* a job waits for one time */
    t = r->is_lost ? NULL : take(r);
    if (t == NULL)
        return false;
    t->timer = *timer;
    t->is_new = true;
    hash_map_add(&r->map, &t->entry, hash_of(r, timer));
    return true;
}

bool recent_timers_remove(struct recent_timers *r, const struct timer *timer)
{
    struct recent_timer *t = find(r, timer);
    if (t == NULL || t->timer.due_at != timer->due_at || t->timer.generation != timer->generation)
        return false;
    drop(r, t);
    return true;
}

size_t recent_timers_count(const struct recent_timers *r)
{
    return r->map.count;
}

int64_t recent_timers_earliest(const struct recent_timers *r)
{
    int64_t earliest = INT64_MAX;
    HASH_MAP_WALK (&r->map, e) {
        earliest = MIN(earliest, of(e)->timer.due_at);
    }
    return earliest == INT64_MAX ? -1 : earliest;
}

static int by_time(const void *a, const void *b)
{
    return timer_order(a, b);
}

void recent_timers_sorted(const struct recent_timers *r, struct timer *out)
{
    size_t count = 0;
    HASH_MAP_WALK (&r->map, e) {
        out[count++] = of(e)->timer;
    }
    qsort(out, count, sizeof(*out), by_time);
}

/* --- before the commit --- */

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The owners that events of this transaction are of, sorted. */
static enum err owners_told(const struct effects *fx, struct arena *arena, int64_t **ret,
                            size_t *ret_count)
{
    size_t count = 0;
    for (const struct effect *x = *fx->begun; x != NULL; x = x->next)
        count += x->kind == EFFECT_EVENTS_APPENDED;
    int64_t *owners = arena_alloc(arena, (count + 1) * sizeof(*owners));
    if (owners == NULL)
        return ERR_NO_MEMORY;
    size_t at = 0;
    for (const struct effect *x = *fx->begun; x != NULL; x = x->next) {
        if (x->kind == EFFECT_EVENTS_APPENDED)
            owners[at++] = x->events.owner;
    }
    qsort(owners, count, sizeof(*owners), by_number);
    *ret = owners;
    *ret_count = count;
    return ERR_OK;
}

static struct recent_timer *new_one(struct hash_entry *e)
{
    return e != NULL && of(e)->is_new ? of(e) : NULL;
}

enum err recent_timers_flush(struct recent_timers *r, struct db *db, const struct effects *fx,
                             struct arena *arena)
{
    struct recent_timer *t = new_one(r->map.newest);
    if (t == NULL)
        return ERR_OK;
    int64_t *owners = NULL;
    size_t count = 0;
    enum err e = owners_told(fx, arena, &owners, &count);
    while (e == ERR_OK && t != NULL) {
        struct recent_timer *before = new_one(t->entry.older);
        t->is_new = false;
        if (bsearch(&t->timer.owner, owners, count, sizeof(*owners), by_number) == NULL) {
            e = timers_insert(db, &t->timer);
            drop(r, t);
        }
        t = before;
    }
    return e;
}
