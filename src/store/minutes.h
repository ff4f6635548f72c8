/* What happened in each minute of the last day, as rows: one for each tenant that had traffic in
 * it, and one for all of them together, whose tenant is 0. */
#ifndef PAWL_STORE_MINUTES_H
#define PAWL_STORE_MINUTES_H

#include "domain/minute_counts.h"
#include "store/db.h"

enum { MINUTES_OF_ALL = 0 };

/* Replaces the row of that minute, which counts since 1970. */
MUST_CHECK enum err minutes_put(struct db *db, int64_t tenant, int64_t minute,
                                const struct minute_counts *counts);
/* Adds to the row, if there is one. */
MUST_CHECK enum err minutes_add(struct db *db, int64_t tenant, int64_t minute,
                                const struct minute_counts *counts);
/* The last minute that has a row; -1: none has. */
MUST_CHECK enum err minutes_last(struct db *db, int64_t *ret);
/* From `from` on, the oldest first, no more than a day of them. */
MUST_CHECK enum err minutes_list(struct db *db, int64_t tenant, int64_t from,
                                 void (*each)(void *ctx, int64_t minute,
                                              const struct minute_counts *counts),
                                 void *ctx);
/* Removes up to `limit` rows of minutes before this one, the oldest first. */
MUST_CHECK enum err minutes_drop(struct db *db, int64_t before, int64_t limit,
                                 int64_t *ret_removed);

#endif
