/* Showing what was counted by the minute. */
#ifndef PAWL_CORE_USECASE_STATS_H
#define PAWL_CORE_USECASE_STATS_H

#include "core/txn/read_tx.h"
#include "domain/minute_counts.h"

/* All that was counted of a tenant in the last `minutes`, the present one included. */
MUST_CHECK enum err stats_total(struct read_tx *tx, int64_t tenant, int64_t minutes,
                                struct minute_counts *ret);
/* How long queued runs waited: the member `waits`; with what its percentiles are made of, if
 * wanted. */
void render_waits(struct json_out *o, const struct minute_counts *c, bool buckets);
/* Everything that was counted, as members. */
void render_figures(struct json_out *o, const struct minute_counts *c, bool buckets);

#endif
