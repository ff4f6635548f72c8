/* What happened to a tenant's runs in one minute, or in several. Pure. */
#ifndef PAWL_DOMAIN_MINUTE_COUNTS_H
#define PAWL_DOMAIN_MINUTE_COUNTS_H

#include "domain/run.h"

/* The first five after STARTS are the ends of runs, in the order of their statuses. */
#define MINUTE_FIGURES(X)                                                           \
    X(MINUTE_STARTS, starts)                                                        \
    X(MINUTE_SUCCEEDED, succeeded)                                                  \
    X(MINUTE_FAILED, failed)                                                        \
    X(MINUTE_DENIED, denied)                                                        \
    X(MINUTE_CANCELLED, cancelled)                                                  \
    X(MINUTE_TIMED_OUT, timed_out)                                                  \
    X(MINUTE_REPLAYS, replays)       /* starts that were answered from their key */ \
    X(MINUTE_MISMATCHES, mismatches) /* starts whose key has another request */     \
    X(MINUTE_REFUSED, refused)       /* starts that met a limit: 429 */

enum minute_figure {
#define X(symbol, name) symbol,
    MINUTE_FIGURES(X)
#undef X
        MINUTE_FIGURE_COUNT
};

/* Waits of up to 1, 2, 4 … ms, and in the last one longer ones too: 2^31 ms are 24 days. */
enum { WAIT_BUCKETS = 32 };

struct minute_counts {
    int64_t figures[MINUTE_FIGURE_COUNT];
    int64_t waits[WAIT_BUCKETS]; /* of runs that were queued, until they got their slots */
};

enum { MINUTE_MS = 60 * 1000, MINUTES_OF_DAY = 24 * 60 };

/* The figure that counts runs which end so. */
enum minute_figure minute_figure_of_end(enum run_status status);

void minute_counts_add_wait(struct minute_counts *c, int64_t ms);
void minute_counts_add(struct minute_counts *c, const struct minute_counts *more);

int64_t minute_counts_waits(const struct minute_counts *c);
/* At least `percent` of the waits were as short as this, in ms, which is less than twice the exact
 * figure; -1: there were none. */
int64_t minute_counts_percentile(const struct minute_counts *c, int64_t percent);

#endif
