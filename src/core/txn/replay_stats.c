/* Replay and mismatch counts on their way to the records. */
#include "core/txn/replay_stats.h"

#include "base/limits.h"
#include "base/pages.h"
#include "store/idempotency.h"

#include <pthread.h>

enum { SLOTS = IDEM_STATS_PENDING_MAX * 2 };

struct count {
    int64_t num; /* 0: free */
    int64_t replays;
    int64_t mismatches;
    int64_t at_ms;
};

struct table {
    size_t used;
    struct count slots[SLOTS];
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

void replay_stats_free(struct replay_stats *stats)
{
    if (stats == NULL)
        return;
    pthread_mutex_destroy(&stats->lock);
    pages_free(stats->filling, sizeof(*stats->filling));
    pages_free(stats->spare, sizeof(*stats->spare));
    free(stats);
}

void replay_stats_add(struct replay_stats *stats, int64_t num, bool mismatch, int64_t at_ms)
{
    assert(num > 0);
    pthread_mutex_lock(&stats->lock);
    struct table *t = stats->filling;
    size_t at = (uint64_t)num * 0x9E3779B97F4A7C15u % SLOTS;
    while (t->slots[at].num != 0 && t->slots[at].num != num)
        at = (at + 1) % SLOTS;
    struct count *c = &t->slots[at];
    if (c->num == num || t->used < IDEM_STATS_PENDING_MAX) {
        t->used += c->num == 0;
        c->num = num;
        c->replays += !mismatch;
        c->mismatches += mismatch;
        c->at_ms = at_ms;
    }
    pthread_mutex_unlock(&stats->lock);
}

bool replay_stats_waiting(struct replay_stats *stats)
{
    pthread_mutex_lock(&stats->lock);
    bool waiting = stats->filling->used > 0;
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
    if (full->used == 0)
        return ERR_OK;
    enum err e = ERR_OK;
    for (size_t i = 0; i < SLOTS && e == ERR_OK; i++) {
        const struct count *c = &full->slots[i];
        if (c->num != 0)
            e = idempotency_count(db, c->num, c->replays, c->mismatches, c->at_ms);
    }
    memset(full, 0, sizeof(*full));
    return e;
}
