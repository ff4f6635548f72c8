/* The owner of a timeline: a run or an entity. Their numbers come from one sequence. */
#ifndef PAWL_STORE_OWNERS_H
#define PAWL_STORE_OWNERS_H

#include "base/arena.h"
#include "store/db.h"

/* Text is borrowed, unless it says otherwise. */
struct owner {
    bool is_entity;
    struct uuid id;
    struct str workflow_id; /* of a run */
    int64_t workflow_version;
    struct str type; /* of an entity: the id of its type */
    struct str name; /* of an entity: the id that its users gave it */
};

/* What follows "SELECT …": the columns of an owner, and where they come from for a table `f` with
 * the owner's number in `run`. Where there is a run, no entity is looked for; only where there is
 * neither, one that was deleted and has events yet. */
#define OWNER_COLUMNS                                                                        \
    "r.id, r.workflow_id, r.workflow_version, COALESCE(n.id, d.id), y.id, COALESCE(n.name, " \
    "d.name)"
#define OWNER_JOINS                                                           \
    " LEFT JOIN runs r ON r.num = f.run"                                      \
    " LEFT JOIN entities n ON n.num = CASE WHEN r.num IS NULL THEN f.run END" \
    " LEFT JOIN entity_sweeps d"                                              \
    " ON d.entity = CASE WHEN r.num IS NULL AND n.num IS NULL THEN f.run END" \
    " LEFT JOIN entity_types y ON y.num = COALESCE(n.type, d.type)"
/* Reads the owner from this column on. False: it has been removed. */
bool owner_read(struct db_rows *rows, int column, struct owner *ret);

/* Text is copied to the arena. */
MUST_CHECK enum err owners_find(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                                struct owner *ret);
MUST_CHECK bool owner_keep(struct owner *owner, struct arena *arena);

#endif
