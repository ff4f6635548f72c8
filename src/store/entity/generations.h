/* Generations of entities as rows. Each has one record, written when it begins, which describes the
 * entity without its earlier history. */
#ifndef PAWL_STORE_ENTITY_GENERATIONS_H
#define PAWL_STORE_ENTITY_GENERATIONS_H

#include "base/arena.h"
#include "store/db.h"
#include "store/entity/entities.h"

struct generation {
    int64_t entity;
    int64_t generation;
    int64_t type_version;
    struct str reason; /* created, rolled_over, migrated or reopened */
    struct str state;  /* JSON; ptr NULL: none yet */
    int64_t version;
    int64_t consumed_seq;
    struct str timers; /* JSON array */
    struct str dedup;  /* JSON object */
    int64_t first_event;
    int64_t first_call;
    int64_t at;
};

MUST_CHECK enum err generations_insert(struct db *db, const struct generation *generation);
/* Those below `before`, the newest first. `each` returns false to stop. Text is borrowed. */
typedef bool generation_each(void *ctx, const struct generation *generation);
MUST_CHECK enum err generations_list(struct db *db, int64_t entity, int64_t before, int64_t limit,
                                     generation_each *each, void *ctx);

/* Generations up to `through` are to be removed. */
MUST_CHECK enum err entity_sweeps_note(struct db *db, int64_t entity, int64_t through);
/* The entity was deleted: everything is to be removed. Keeps its identity for events that have not
 * been published yet. */
MUST_CHECK enum err entity_sweeps_note_deleted(struct db *db, const struct entity *entity,
                                               int64_t now_ms);

#endif
