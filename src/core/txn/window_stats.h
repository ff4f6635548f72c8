/* Counts of duplicate signals per entity type. A duplicate must not change a row, so its count
 * waits here for the next sweep. A crash or a rollback loses at most the last second of counts,
 * never a response. Used by the writer only. */
#ifndef PAWL_CORE_TXN_WINDOW_STATS_H
#define PAWL_CORE_TXN_WINDOW_STATS_H

#include "domain/entity/dedup.h"
#include "store/db.h"

struct window_stats;

MUST_CHECK struct window_stats *window_stats_new(void);
void window_stats_free(struct window_stats *stats);
/* Where to count for a type; NULL past DEDUP_STATS_PENDING_MAX types, or when the type is 0. */
struct dedup_counts *window_stats_of(struct window_stats *stats, int64_t type);
/* After a rollback: what was counted may be counted again. */
void window_stats_forget(struct window_stats *stats);
/* Inside a transaction. On an error the counts taken are lost with it. */
MUST_CHECK enum err window_stats_flush(struct window_stats *stats, struct db *db, int64_t now_ms);

#endif
