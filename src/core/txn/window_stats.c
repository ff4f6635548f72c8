/* How duplicates of signals come, on its way to the store. */
#include "core/txn/window_stats.h"

#include "base/limits.h"
#include "base/pages.h"
#include "store/entity/dedup.h"

enum { SLOTS = DEDUP_STATS_PENDING_MAX * 2 };

struct window_stats {
    size_t used;
    struct {
        int64_t type; /* 0: free */
        struct dedup_counts counts;
    } slots[SLOTS];
};

struct window_stats *window_stats_new(void)
{
    return pages_new(sizeof(struct window_stats));
}

void window_stats_free(struct window_stats *stats)
{
    pages_free(stats, sizeof(*stats));
}

struct dedup_counts *window_stats_of(struct window_stats *s, int64_t type)
{
    if (type == 0)
        return NULL;
    size_t at = (uint64_t)type * 0x9E3779B97F4A7C15u % SLOTS;
    while (s->slots[at].type != 0 && s->slots[at].type != type)
        at = (at + 1) % SLOTS;
    if (s->slots[at].type == 0 && s->used == DEDUP_STATS_PENDING_MAX)
        return NULL;
    s->used += s->slots[at].type == 0;
    s->slots[at].type = type;
    return &s->slots[at].counts;
}

void window_stats_forget(struct window_stats *stats)
{
    if (stats->used > 0)
        memset(stats, 0, sizeof(*stats));
}

enum err window_stats_flush(struct window_stats *stats, struct db *db, int64_t now_ms)
{
    if (stats->used == 0)
        return ERR_OK;
    enum err e = ERR_OK;
    for (size_t i = 0; i < SLOTS && e == ERR_OK; i++) {
        if (stats->slots[i].type != 0)
            e = dedup_counts_add(db, stats->slots[i].type, &stats->slots[i].counts, now_ms);
    }
    window_stats_forget(stats);
    return e;
}
