/* Replay and mismatch counts on their way to the records. */
#include "core/txn/replay_stats.h"

#include "base/hash_map.h"
#include "base/limits.h"
#include "base/pages.h"
#include "store/idempotency.h"

#include <pthread.h>

struct count {
    struct hash_entry entry;
    int64_t num;
    int64_t replays;
    int64_t mismatches;
    int64_t at_ms;
};

struct table {
    struct hash_map map; /* by num */
    struct count counts[IDEM_STATS_PENDING_MAX];
};

struct replay_stats {
    pthread_mutex_t lock;
    struct table *filling;
    struct table *spare; /* what the writer works off while others go on filling */
};

struct replay_stats *replay_stats_new(void)
{
    struct replay_stats *stats = calloc(1, sizeof(*stats));
    if (stats == NULL)
        return NULL;
    stats->filling = pages_new(sizeof(*stats->filling));
    stats->spare = pages_new(sizeof(*stats->spare));
    pthread_mutex_init(&stats->lock, NULL);
    if (stats->filling == NULL || stats->spare == NULL) {
        replay_stats_free(stats);
        return NULL;
    }
    return stats;
}

static void table_free(struct table *t)
{
    if (t != NULL)
        hash_map_release(&t->map);
    pages_free(t, sizeof(*t));
}

void replay_stats_free(struct replay_stats *stats)
{
    if (stats == NULL)
        return;
    pthread_mutex_destroy(&stats->lock);
    table_free(stats->filling);
    table_free(stats->spare);
    free(stats);
}

/* NULL: the table of waiting counts is full. */
static struct count *count_of(struct table *t, int64_t num)
{
    uint64_t hash = hash_number(&t->map, num);
    for (struct hash_entry *e = hash_map_find(&t->map, hash); e != NULL;
         e = hash_map_find_next(e)) {
        struct count *c = CONTAINER_OF(e, struct count, entry);
        if (c->num == num)
            return c;
    }
    if (t->map.count == IDEM_STATS_PENDING_MAX)
        return NULL;
    struct count *added = &t->counts[t->map.count];
    *added = (struct count){.num = num};
    hash_map_add(&t->map, &added->entry, hash);
    return added;
}

void replay_stats_add(struct replay_stats *stats, int64_t num, bool mismatch, int64_t at_ms)
{
    assert(num != 0);
    pthread_mutex_lock(&stats->lock);
    struct count *c = count_of(stats->filling, num);
    if (c != NULL) {
        c->replays += !mismatch;
        c->mismatches += mismatch;
        c->at_ms = at_ms;
    }
    pthread_mutex_unlock(&stats->lock);
}

bool replay_stats_waiting(struct replay_stats *stats)
{
    pthread_mutex_lock(&stats->lock);
    bool waiting = stats->filling->map.count > 0;
    pthread_mutex_unlock(&stats->lock);
    return waiting;
}

enum err replay_stats_flush(struct replay_stats *stats, struct db *db)
{
    pthread_mutex_lock(&stats->lock);
    struct table *full = stats->filling;
    stats->filling = stats->spare;
    stats->spare = full;
    pthread_mutex_unlock(&stats->lock);
    enum err e = ERR_OK;
    for (size_t i = 0; i < full->map.count && e == ERR_OK; i++) {
        const struct count *c = &full->counts[i];
        e = idempotency_count(db, c->num, c->replays, c->mismatches, c->at_ms);
    }
    hash_map_clear(&full->map);
    return e;
}
