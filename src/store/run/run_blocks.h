/* The index of runs by tenant.
 *
 * A row is a block: runs of one tenant, with the number of the first as its key and the distances
 * of all from it as text, rising:
 *
 *   tenant  num       runs
 *   7       71402118  ,0,40962,53248,
 *   7       98304000  (null: this run alone)
 *
 * Blocks of a tenant do not overlap. What one fold indexes of a tenant is one block, or several of
 * BLOCK_RUNS_MAX, so it costs one row for each tenant and not one for each run. The view
 * `runs_index` shows it run by run. */
#ifndef PAWL_STORE_RUN_RUN_BLOCKS_H
#define PAWL_STORE_RUN_RUN_BLOCKS_H

#include "store/db.h"

/* A block is written again when one of its runs is removed, so blocks are small. */
enum { BLOCK_RUNS_MAX = 64 };

struct indexed_run {
    int64_t tenant;
    int64_t num;
    bool holds; /* a slot; of no concern here */
};

/* Runs by tenant and then by number, each newer than all that its tenant has here. */
MUST_CHECK enum err run_blocks_add(struct db *db, const struct indexed_run *runs, size_t count);
/* The run no longer exists. */
MUST_CHECK enum err run_blocks_remove(struct db *db, int64_t tenant, int64_t run);
MUST_CHECK enum err run_blocks_clear(struct db *db);

struct run_walk {
    int64_t tenant;
    int64_t from; /* not itself: those above it, or with `down` those below */
    bool down;    /* the newest first */
};

/* The next runs of a walk, `room` at most. Fewer than that: there are no more. */
MUST_CHECK enum err run_blocks_list(struct db *db, const struct run_walk *walk, int64_t *nums,
                                    size_t room, size_t *ret_count);

#endif
