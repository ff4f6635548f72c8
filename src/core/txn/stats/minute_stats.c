/* Counts by the minute, on their way to the store. */
#include "core/txn/stats/minute_stats.h"

#include "base/hash_map.h"
#include "base/limits.h"
#include "base/pages.h"
#include "store/minutes.h"

#include <pthread.h>

struct tenant_counts {
    struct hash_entry entry;
    int64_t tenant;
    struct minute_counts counts;
};

/* One minute. The rows are those of the tenants, in the order in which they came, and then that of
 * all of them. */
struct minute_table {
    int64_t minute;
    int64_t stored;      /* rows that are in the store */
    bool adds;           /* the store may have counts of this minute from before */
    bool used;           /* something was counted */
    struct hash_map map; /* by tenant */
    struct minute_counts all;
    struct tenant_counts tenants[STATS_TENANTS_MAX];
};

struct minute_stats {
    pthread_mutex_t lock;
    struct minute_table *filling; /* the present minute */
    struct minute_table *full;    /* one that is over. When it is stored it stays until the next
                                   * one, for readers whose snapshot does not have its rows yet. */
    int64_t stored_through;       /* no minute after this one has rows */
};

struct minute_stats *minute_stats_new(void)
{
    struct minute_stats *stats = calloc(1, sizeof(*stats));
    if (stats == NULL)
        return NULL;
    stats->filling = pages_new(sizeof(*stats->filling));
    stats->full = pages_new(sizeof(*stats->full));
    stats->stored_through = -1;
    pthread_mutex_init(&stats->lock, NULL);
    if (stats->filling == NULL || stats->full == NULL) {
        minute_stats_free(stats);
        return NULL;
    }
    return stats;
}

static void table_free(struct minute_table *t)
{
    if (t != NULL)
        hash_map_release(&t->map);
    pages_free(t, sizeof(*t));
}

void minute_stats_free(struct minute_stats *stats)
{
    if (stats == NULL)
        return;
    pthread_mutex_destroy(&stats->lock);
    table_free(stats->filling);
    table_free(stats->full);
    free(stats);
}

/* --- minutes, under the lock --- */

static int64_t rows_of(const struct minute_table *t)
{
    return t->used ? (int64_t)t->map.count + 1 : 0;
}

static void begin_minute(struct minute_stats *s, int64_t minute)
{
    struct minute_table *t = s->filling;
    hash_map_clear(&t->map);
    t->minute = minute;
    t->stored = 0;
    t->adds = minute <= s->stored_through;
    t->used = false;
    t->all = (struct minute_counts){0};
}

/* The present minute is over. False when the one before it is not stored yet: then it goes on. */
static bool end_minute(struct minute_stats *s)
{
    if (s->full->stored < rows_of(s->full))
        return false;
    struct minute_table *ended = s->filling;
    s->filling = s->full;
    s->full = ended;
    s->stored_through = MAX(s->stored_through, ended->minute);
    return true;
}

/* The clock may go back: then the minute goes on. */
static struct minute_table *minute_at(struct minute_stats *s, int64_t now_ms)
{
    int64_t minute = now_ms / MINUTE_MS;
    if (!s->filling->used || (minute > s->filling->minute && end_minute(s)))
        begin_minute(s, minute);
    s->filling->used = true;
    return s->filling;
}

static struct tenant_counts *find_tenant(struct minute_table *t, int64_t tenant)
{
    struct hash_entry *e = hash_map_find(&t->map, hash_number(&t->map, tenant));
    while (e != NULL && CONTAINER_OF(e, struct tenant_counts, entry)->tenant != tenant)
        e = hash_map_find_next(e);
    return e != NULL ? CONTAINER_OF(e, struct tenant_counts, entry) : NULL;
}

/* NULL: there are too many. */
static struct tenant_counts *tenant_of(struct minute_table *t, int64_t tenant)
{
    struct tenant_counts *c = find_tenant(t, tenant);
    if (c != NULL || t->map.count == STATS_TENANTS_MAX)
        return c;
    c = &t->tenants[t->map.count];
    *c = (struct tenant_counts){.tenant = tenant};
    hash_map_add(&t->map, &c->entry, hash_number(&t->map, tenant));
    return c;
}

/* --- counting --- */

void minute_stats_count(struct minute_stats *s, int64_t tenant, enum minute_figure figure,
                        int64_t now_ms)
{
    if (s == NULL || tenant <= 0)
        return;
    pthread_mutex_lock(&s->lock);
    struct minute_table *t = minute_at(s, now_ms);
    struct tenant_counts *c = tenant_of(t, tenant);
    t->all.figures[figure]++;
    if (c != NULL)
        c->counts.figures[figure]++;
    pthread_mutex_unlock(&s->lock);
}

void minute_stats_count_wait(struct minute_stats *s, int64_t tenant, int64_t wait_ms,
                             int64_t now_ms)
{
    if (s == NULL || tenant <= 0)
        return;
    pthread_mutex_lock(&s->lock);
    struct minute_table *t = minute_at(s, now_ms);
    struct tenant_counts *c = tenant_of(t, tenant);
    minute_counts_add_wait(&t->all, wait_ms);
    if (c != NULL)
        minute_counts_add_wait(&c->counts, wait_ms);
    pthread_mutex_unlock(&s->lock);
}

/* --- storing --- */

enum err minute_stats_open(struct minute_stats *s, struct db *db)
{
    int64_t last;
    enum err e = minutes_last(db, &last);
    if (e != ERR_OK)
        return e;
    pthread_mutex_lock(&s->lock);
    s->stored_through = MAX(s->stored_through, last);
    pthread_mutex_unlock(&s->lock);
    return ERR_OK;
}

int64_t minute_stats_due_at(struct minute_stats *s, int64_t now_ms)
{
    pthread_mutex_lock(&s->lock);
    int64_t due = -1;
    if (s->full->stored < rows_of(s->full))
        due = now_ms;
    else if (s->filling->used)
        due = (s->filling->minute + 1) * MINUTE_MS;
    pthread_mutex_unlock(&s->lock);
    return due;
}

/* Nobody else changes a minute that is over, so that it is read without the lock. */
static enum err store_row(const struct minute_table *t, struct db *db, int64_t row)
{
    bool of_all = row == (int64_t)t->map.count;
    int64_t tenant = of_all ? MINUTES_OF_ALL : t->tenants[row].tenant;
    const struct minute_counts *counts = of_all ? &t->all : &t->tenants[row].counts;
    return t->adds ? minutes_add(db, tenant, t->minute, counts)
                   : minutes_put(db, tenant, t->minute, counts);
}

enum err minute_stats_store(struct minute_stats *s, struct db *db, int64_t now_ms, bool closing,
                            int64_t *ret_rows)
{
    pthread_mutex_lock(&s->lock);
    const struct minute_table *now = s->filling;
    if (now->used && (closing || now_ms / MINUTE_MS > now->minute) && end_minute(s))
        s->filling->used = false;
    const struct minute_table *t = s->full;
    int64_t rows = MIN(rows_of(t) - t->stored, (int64_t)STATS_ROWS_PER_TURN);
    pthread_mutex_unlock(&s->lock);
    for (int64_t i = 0; i < rows; i++) {
        enum err e = store_row(t, db, t->stored + i);
        if (e != ERR_OK)
            return e;
    }
    *ret_rows = rows;
    return ERR_OK;
}

void minute_stats_stored(struct minute_stats *s, int64_t rows)
{
    pthread_mutex_lock(&s->lock);
    s->full->stored += rows;
    assert(s->full->stored <= rows_of(s->full));
    pthread_mutex_unlock(&s->lock);
}

/* --- reading --- */

static void read_table(struct minute_table *t, int64_t tenant, bool over, minute_stats_each *each,
                       void *ctx)
{
    const struct tenant_counts *c = tenant != MINUTES_OF_ALL ? find_tenant(t, tenant) : NULL;
    if (!t->used || (tenant != MINUTES_OF_ALL && c == NULL))
        return;
    int64_t row = c != NULL ? (int64_t)(c - t->tenants) : (int64_t)t->map.count;
    bool adds = !over || (t->adds && row >= t->stored);
    each(ctx, t->minute, c != NULL ? &c->counts : &t->all, adds);
}

void minute_stats_read(struct minute_stats *s, int64_t tenant, minute_stats_each *each, void *ctx)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    read_table(s->full, tenant, true, each, ctx);
    read_table(s->filling, tenant, false, each, ctx);
    pthread_mutex_unlock(&s->lock);
}
