/* Background work: what the writer does between batches. Each kind is a row of one table. It runs
 * in small slices, each in its own transaction, and retries on its own schedule after a failure, so
 * no kind delays another. Within a kind no owner delays another: items that fail together are tried
 * one by one, and an item that fails alone is put aside (docs/adr/019). */
#ifndef PAWL_CORE_BACKGROUND_BACKGROUND_H
#define PAWL_CORE_BACKGROUND_BACKGROUND_H

#include "core/background/delivery_log.h"
#include "core/background/fan_out.h"
#include "core/background/put_aside.h"
#include "core/background/retention.h"
#include "core/background/timer_batch.h"
#include "core/background/work.h"
#include "core/entity/entity_sweep.h"
#include "core/txn/replay_stats.h"
#include "core/txn/stats/minute_stats.h"

struct metric;

/* In the order in which they run: work that is due at a time first. */
/* clang-format off */
#define BACKGROUND_WORK(X)                                                                         \
    /* symbol            context         functions */ \
    X(WORK_TIMERS,      "timers",        timers)      /* ends of leases and sleeps, deadlines, delayed starts */   \
    X(WORK_SCHEDULES,   "schedules",     schedules)   /* times that start runs */                                 \
    X(WORK_COUNTS,      "counts",        counts)      /* counts of replays and duplicates go to the store */       \
    X(WORK_MINUTES,     "minutes",       minutes)     /* counts go to the store; old ones and ended sessions leave */ \
    X(WORK_KEYS,        "keys",          keys)        /* idempotency keys past their time */                      \
    X(WORK_INDEXES,     "indexes",       indexes)     /* rows that their index does not have yet */               \
    X(WORK_SEGMENTS,    "segments",      segments)    /* of the index of idempotency keys: sealed and merged */  \
    X(WORK_RETENTION,   "retention",     retention)   /* old runs */                                              \
    X(WORK_FEED,        "feed",          feed)        /* old rows of the feed */                                  \
    X(WORK_GENERATIONS, "generations",   generations) /* old generations of entities, and deleted ones */         \
    X(WORK_REQUEUE,     "requeue",       requeue)     /* calls that go to another queue */                        \
    X(WORK_DELIVERIES,  "deliveries",    deliveries)  /* the log of webhooks */                                   \
    X(WORK_DISPATCH,    "dispatch",      queued)      /* queued runs that can start */                            \
    X(WORK_WEBHOOKS,    "webhooks",      webhooks)    /* events become deliveries */
/* clang-format on */

enum work_kind {
#define X(symbol, name, functions) symbol,
    BACKGROUND_WORK(X)
#undef X
        WORK_COUNT
};

struct background {
    struct work_env env;
    int64_t mono_ms;      /* of the run under way */
    enum work_kind first; /* that has its turn first */
    struct replay_stats *stats;
    struct minute_stats *minutes; /* NULL: nothing is counted by the minute */
    struct metric *failures;      /* by kind */
    bool keeps_all;               /* never remove old runs or old rows of the feed */
    struct {
        int64_t at;       /* nothing to do before this time (monotonic ms) */
        int64_t retry_at; /* after a failure: not before this time (monotonic ms) */
        int64_t failed;   /* failures in a row */
        bool more;        /* the last slice left work to do */
    } kinds[WORK_COUNT];
    struct timer_batch timers;
    int64_t next_schedule; /* -1: none */
    struct put_aside aside;
    struct retention retention;
    struct entity_sweep entity_sweep;
    struct fan_out fan_out;
    struct delivery_log delivery_log;
};

/* Reads the earliest timer and schedule. */
MUST_CHECK enum err background_init(struct background *b, struct db *db, struct replay_stats *stats,
                                    struct minute_stats *minutes, struct metric *failures);
/* Notes that a batch armed a timer or set a schedule (-1: none). True when it is the next one due.
 */
bool background_note_due(struct background *b, int64_t due_at);
/* Runs one slice of each kind that is due. The effects stay in tx. Returns the first outage, but
 * ERR_STORE_FAILED before any other. */
MUST_CHECK enum err background_run(struct background *b, struct tx *tx, int64_t now_ms,
                                   int64_t mono_ms);
/* Before the end: stores all that is counted in memory. */
MUST_CHECK enum err background_store_counts(struct background *b, struct tx *tx, int64_t now_ms);
/* True when ops have caused background work that should run soon. */
bool background_is_wanted(const struct background *b, const struct tx *tx);
/* The time until some kind is due; 0: one is. */
int64_t background_wait_ms(struct background *b, const struct tx *tx, int64_t now_ms,
                           int64_t mono_ms);

#endif
