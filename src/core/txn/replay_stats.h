/* Counts of replays and mismatches of idempotency keys. A replay must not cost a disk write, so
 * its count waits here for the next commit. A crash loses at most the last second of counts,
 * never a response. */
#ifndef PAWL_CORE_TXN_REPLAY_STATS_H
#define PAWL_CORE_TXN_REPLAY_STATS_H

#include "store/db.h"

struct replay_stats;

MUST_CHECK struct replay_stats *replay_stats_new(void);
void replay_stats_free(struct replay_stats *stats);

/* From any thread. Past IDEM_STATS_PENDING_MAX records the count is dropped. */
void replay_stats_add(struct replay_stats *stats, int64_t record_num, bool mismatch, int64_t at_ms);
bool replay_stats_waiting(struct replay_stats *stats);

/* Inside a transaction. On an error the counts taken are lost with it. */
MUST_CHECK enum err replay_stats_flush(struct replay_stats *stats, struct db *db);

#endif
