/* Runs that the index of runs does not have yet, and which of them hold a slot. The fold that fills
 * the index takes them from here, sorted, instead of reading the runs again.
 *
 * Only memory of the writer. After a rollback, when the server has just started, and when there are
 * more than fit, it has lost count: the next fold reads the runs. */
#ifndef PAWL_CORE_TXN_CACHE_RECENT_RUNS_H
#define PAWL_CORE_TXN_CACHE_RECENT_RUNS_H

#include "base/limits.h"
#include "store/run/late_index.h"

struct recent_runs {
    bool is_lost;
    size_t count;
    struct indexed_run *runs; /* RECENT_RUNS_MAX; numbers rise */
};

MUST_CHECK struct recent_runs *recent_runs_new(void);
void recent_runs_free(struct recent_runs *r);
/* Empties it: it is lost. */
void recent_runs_forget(struct recent_runs *r);
/* Empties it: the index has all runs. */
void recent_runs_folded(struct recent_runs *r);

void recent_runs_add(struct recent_runs *r, int64_t tenant, int64_t num);
/* Of one that the index does not have yet. */
void recent_runs_hold(struct recent_runs *r, int64_t num, bool holds);
/* Puts them into the index, through `last`. Inside a transaction. */
MUST_CHECK enum err recent_runs_index(struct recent_runs *r, struct db *db, int64_t last);

#endif
