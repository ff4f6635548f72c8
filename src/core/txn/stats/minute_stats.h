/* What happens to each tenant's runs, counted in memory by the minute. When a minute is over, the
 * writer stores it: one row for each tenant that had traffic in it, never one for each start
 * (docs/adr/042). A crash loses the counts of the last minute, never a response; a server that
 * stops stores them.
 *
 * At most STATS_TENANTS_MAX tenants have counts of their own in a minute. The others are in those
 * of all tenants only. */
#ifndef PAWL_CORE_TXN_STATS_MINUTE_STATS_H
#define PAWL_CORE_TXN_STATS_MINUTE_STATS_H

#include "domain/minute_counts.h"
#include "store/db.h"

struct minute_stats;

MUST_CHECK struct minute_stats *minute_stats_new(void);
void minute_stats_free(struct minute_stats *stats);

/* --- counting: from any thread; with NULL nothing is counted --- */

/* A tenant of 0 is one that is not stored: not counted. */
void minute_stats_count(struct minute_stats *stats, int64_t tenant, enum minute_figure figure,
                        int64_t now_ms);
void minute_stats_count_wait(struct minute_stats *stats, int64_t tenant, int64_t wait_ms,
                             int64_t now_ms);

/* --- storing: by the writer --- */

/* Reads which minutes are stored already. Before the first call of the functions below. */
MUST_CHECK enum err minute_stats_open(struct minute_stats *stats, struct db *db);
/* When there is something to store; -1: nothing was counted. */
int64_t minute_stats_due_at(struct minute_stats *stats, int64_t now_ms);
/* Inside a transaction: stores some rows of a minute that is over, or with `closing` of the present
 * one too. *ret_rows of them, 0 when all are stored. */
MUST_CHECK enum err minute_stats_store(struct minute_stats *stats, struct db *db, int64_t now_ms,
                                       bool closing, int64_t *ret_rows);
/* They are committed. Without this call they are stored again. */
void minute_stats_stored(struct minute_stats *stats, int64_t rows);

/* --- reading: from any thread --- */

/* What is counted of a tenant, or of MINUTES_OF_ALL. With `adds` the counts come on top of the
 * minute's row. Else they are the same as the row, which may not be there yet. */
typedef void minute_stats_each(void *ctx, int64_t minute, const struct minute_counts *counts,
                               bool adds);
void minute_stats_read(struct minute_stats *stats, int64_t tenant, minute_stats_each *each,
                       void *ctx);

#endif
