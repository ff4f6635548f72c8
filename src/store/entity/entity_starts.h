/* Runs that an entity's handler asked to start, as rows. */
#ifndef PAWL_STORE_ENTITY_ENTITY_STARTS_H
#define PAWL_STORE_ENTITY_ENTITY_STARTS_H

#include "base/arena.h"
#include "store/db.h"

struct entity_start {
    int64_t entity;
    int64_t num; /* 1, 2, 3 … among those that wait */
    struct str workflow_id;
    struct str input;  /* JSON */
    struct str labels; /* JSON object of texts */
    struct str key;
    int64_t tries; /* refused so far, for now */
};

/* Gives it its number. */
MUST_CHECK enum err entity_starts_insert(struct db *db, const struct entity_start *start);
/* The first one. Text is copied to the arena. */
MUST_CHECK enum err entity_starts_any(struct db *db, int64_t entity, bool *ret);
MUST_CHECK enum err entity_starts_first(struct db *db, int64_t entity, struct arena *arena,
                                        bool *ret_found, struct entity_start *ret);
MUST_CHECK enum err entity_starts_tried(struct db *db, const struct entity_start *start);
MUST_CHECK enum err entity_starts_remove(struct db *db, int64_t entity, int64_t num);

#endif
