/* What the writer does by itself: firing timers that are due, starting queued runs, evicting
 * idempotency keys past their time, and writing counts and last uses that waited. In small slices,
 * each a transaction, so that callers never wait long. */
#ifndef PAWL_ENGINE_CHORES_H
#define PAWL_ENGINE_CHORES_H

#include "engine/delivery_log.h"
#include "engine/entity_sweep.h"
#include "engine/fan_out.h"
#include "engine/replay_stats.h"
#include "engine/retention.h"
#include "engine/tx.h"

struct chores {
    struct replay_stats *stats;
    const struct env *env;
    int64_t next_due;      /* the earliest timer; -1: none */
    int64_t retry_at;      /* after a failure: not before this time (monotonic ms) */
    int64_t next_sweep_at; /* counts and evictions (monotonic ms) */
    bool evict_more;       /* the last slice was full */
    bool dispatch_more;    /* queued runs may be able to start */
    int64_t dispatch_at;   /* after a failure: not before this time (monotonic ms) */
    struct retention retention;
    int64_t retention_at; /* monotonic ms */
    bool keeps_all;       /* neither of these two is done */
    int64_t feed_at;      /* likewise: old rows of the feed are looked for */
    struct entity_sweep entity_sweep;
    bool entity_sweep_more; /* than the last slice could do */
    bool requeue_more;      /* likewise, of calls that go to another queue */
    struct fan_out fan_out;
    bool fan_out_behind; /* the feed has rows that webhooks may want */
    struct delivery_log delivery_log;
    int64_t delivery_log_at; /* monotonic ms */
};

/* Reads the earliest timer. */
MUST_CHECK enum err chores_init(struct chores *c, struct db *db, struct replay_stats *stats,
                                const struct env *env);
/* A batch armed a timer (-1: none). True when it is the first to come. */
bool chores_note_timer(struct chores *c, int64_t due_at);
/* All that is due, one slice of each. Wakes stay in tx. */
MUST_CHECK enum err chores_run(struct chores *c, struct tx *tx);
/* Is there something that a turn without chores has brought? Then they should be run soon. */
bool chores_are_wanted(const struct chores *c, const struct tx *tx);
/* How long nothing will be due. */
int64_t chores_wait_ms(const struct chores *c, int64_t now_ms);

#endif
