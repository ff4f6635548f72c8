/* Removes what entities no longer need, a few rows at a time: old generations, and everything of a
 * deleted entity. The row that asks for it is removed last, so that the rest is found again after a
 * crash. */
#ifndef PAWL_STORE_ENTITY_ENTITY_SWEEP_H
#define PAWL_STORE_ENTITY_ENTITY_SWEEP_H

#include "store/db.h"

struct entity_sweep_row {
    int64_t entity;
    int64_t through; /* a generation */
    bool deleted;
    int64_t deleted_at; /* 0: it was not */
};

/* The next entity after `after` that has something to remove. */
MUST_CHECK enum err entity_sweeps_next(struct db *db, int64_t after, bool *ret_found,
                                       struct entity_sweep_row *ret);
/* Nothing is left to remove. */
MUST_CHECK enum err entity_sweeps_done(struct db *db, int64_t entity);

/* Removes up to `rows` rows of the oldest generations up to row->through, but no event from
 * `held_from` on. *ret_gone when that was all. Jobs of a generation are found by their ordinals,
 * which start again at 1 after JOB_ORDINAL_MAX calls. */
MUST_CHECK enum err entity_sweep_generations(struct db *db, const struct entity_sweep_row *row,
                                             int64_t held_from, int64_t rows, int64_t *ret_removed,
                                             bool *ret_gone);
/* Removes up to `rows` of an entity's events, the oldest first, but none from `held_from` on. */
MUST_CHECK enum err entity_sweep_events(struct db *db, int64_t entity, int64_t held_from,
                                        int64_t rows, int64_t *ret_removed);
/* Removes up to `rows` rows of an entity that was deleted, but for its keys and its events;
 * *ret_gone when that was all. */
MUST_CHECK enum err entity_sweep_deleted(struct db *db, int64_t entity, int64_t rows,
                                         int64_t *ret_removed, bool *ret_gone);

#endif
