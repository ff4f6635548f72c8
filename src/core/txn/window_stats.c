/* How duplicates of signals come, on its way to the store. */
#include "core/txn/window_stats.h"

#include "base/hash_map.h"
#include "base/limits.h"
#include "base/pages.h"
#include "store/entity/dedup.h"

struct pending {
    struct hash_entry entry;
    int64_t type;
    struct dedup_counts counts;
};

struct window_stats {
    struct hash_map map; /* by type */
    struct pending pending[DEDUP_STATS_PENDING_MAX];
};

struct window_stats *window_stats_new(void)
{
    return pages_new(sizeof(struct window_stats));
}

void window_stats_free(struct window_stats *stats)
{
    if (stats == NULL)
        return;
    hash_map_release(&stats->map);
    pages_free(stats, sizeof(*stats));
}

static struct pending *pending_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct pending, entry);
}

struct dedup_counts *window_stats_of(struct window_stats *s, int64_t type)
{
    if (type == 0)
        return NULL;
    uint64_t hash = hash_number(&s->map, type);
    struct hash_entry *e = hash_map_find(&s->map, hash);
    while (e != NULL && pending_of(e)->type != type)
        e = hash_map_find_next(e);
    if (e != NULL)
        return &pending_of(e)->counts;
    if (s->map.count == DEDUP_STATS_PENDING_MAX)
        return NULL;
    struct pending *added = &s->pending[s->map.count];
    *added = (struct pending){.type = type};
    hash_map_add(&s->map, &added->entry, hash);
    return &added->counts;
}

void window_stats_forget(struct window_stats *stats)
{
    hash_map_clear(&stats->map);
}

enum err window_stats_flush(struct window_stats *stats, struct db *db, int64_t now_ms)
{
    enum err e = ERR_OK;
    for (size_t i = 0; i < stats->map.count && e == ERR_OK; i++)
        e = dedup_counts_add(db, stats->pending[i].type, &stats->pending[i].counts, now_ms);
    window_stats_forget(stats);
    return e;
}
