/* Entity types, their versions and entities as rows. Signals, updates and timers are in inbox.h,
 * history in generations.h. */
#ifndef PAWL_STORE_ENTITY_ENTITIES_H
#define PAWL_STORE_ENTITY_ENTITIES_H

#include "base/arena.h"
#include "domain/entity/entity.h"
#include "store/db.h"

/* --- types --- */

struct entity_type {
    int64_t num;
    int64_t tenant;
    struct str id;
    int64_t latest_version;
    int64_t created_at;
    int64_t updated_at;
};

/* Text is copied to the arena, here and below. */
MUST_CHECK enum err entity_types_find(struct db *db, int64_t tenant, struct str id,
                                      struct arena *arena, bool *ret_found,
                                      struct entity_type *ret);
MUST_CHECK enum err entity_types_find_num(struct db *db, int64_t num, struct arena *arena,
                                          bool *ret_found, struct entity_type *ret);
/* Gives it its number. */
MUST_CHECK enum err entity_types_insert(struct db *db, struct entity_type *type);
MUST_CHECK enum err entity_types_update(struct db *db, const struct entity_type *type);
/* Those after `after`, by id. `each` returns false to stop. Text is borrowed. */
typedef bool entity_type_each(void *ctx, const struct entity_type *type);
MUST_CHECK enum err entity_types_list(struct db *db, int64_t tenant, struct str after,
                                      int64_t limit, entity_type_each *each, void *ctx);

struct entity_version {
    int64_t type;
    int64_t version;
    struct entity_rules rules;
    struct str created_by;
    int64_t created_at;
    int64_t updated_at;
};

MUST_CHECK enum err entity_versions_find(struct db *db, int64_t type, int64_t version,
                                         struct arena *arena, bool *ret_found,
                                         struct entity_version *ret);
/* A new one, or other rules for one that exists. */
MUST_CHECK enum err entity_versions_put(struct db *db, const struct entity_version *version);
/* Its queue has changed: the open calls of its entities are to move there, from the first name on.
 */
MUST_CHECK enum err entity_versions_requeue(struct db *db, int64_t type, int64_t version);
/* A version whose calls are to move, and up to which name that is done. */
MUST_CHECK enum err entity_versions_requeueing(struct db *db, struct arena *arena, bool *ret_found,
                                               int64_t *ret_type, int64_t *ret_version,
                                               struct str *ret_through);
/* Done up to this name; ptr NULL: all is done. */
MUST_CHECK enum err entity_versions_requeued(struct db *db, int64_t type, int64_t version,
                                             struct str through);
/* All of a type, the newest first. Text is borrowed. */
typedef void entity_version_each(void *ctx, const struct entity_version *version);
MUST_CHECK enum err entity_versions_list(struct db *db, int64_t type, int64_t limit,
                                         entity_version_each *each, void *ctx);

/* --- entities --- */

struct entity {
    int64_t num; /* the time in its id, from one sequence with those of runs */
    struct uuid id;
    int64_t tenant;
    int64_t type;
    struct str name; /* the id that its users gave it */
    int64_t type_version;
    int64_t version; /* grows by one with every answer that counts */
    int64_t generation;
    int64_t last_seq;     /* of the signals that came */
    int64_t consumed_seq; /* of those that are applied */
    int64_t given_seq;  /* of those that the call under way was given; -1: it was not handed out */
    int64_t last_event; /* every change adds one: the row's own version */
    int64_t rolled_event; /* the last one of the generation before */
    int64_t calls;
    int64_t open_job;   /* an ordinal; -1: no call is under way */
    int64_t timer_at;   /* -1: none */
    int64_t migrate_to; /* -1: nowhere */
    int64_t created_at;
    int64_t active_at;
    int64_t finished_at; /* -1: it is open */
};

/* The highest number of an entity so far, also of those being removed; 0 when there is none. */
MUST_CHECK enum err entities_last_num(struct db *db, int64_t *ret);
MUST_CHECK enum err entities_find(struct db *db, int64_t type, struct str name, struct arena *arena,
                                  bool *ret_found, struct entity *ret);
MUST_CHECK enum err entities_find_num(struct db *db, int64_t num, struct arena *arena,
                                      bool *ret_found, struct entity *ret);
MUST_CHECK enum err entities_insert(struct db *db, const struct entity *entity);
/* Writes what a change may alter, if the row is still the one that was read: its version and its
 * last event were these. ERR_CONCURRENCY otherwise. */
MUST_CHECK enum err entities_update(struct db *db, const struct entity *entity,
                                    int64_t read_version, int64_t read_event);
/* Pins it to another version. Apart from the other changes, because the column is indexed: an index
 * is written whenever its column is. */
MUST_CHECK enum err entities_pin(struct db *db, int64_t num, int64_t type_version);
MUST_CHECK enum err entities_delete(struct db *db, int64_t num);
/* Those of a type after `after`, by name; type_version -1: of any version. `each` returns false to
 * stop. Text is borrowed. */
typedef bool entity_each(void *ctx, const struct entity *entity);
MUST_CHECK enum err entities_list(struct db *db, int64_t type, int64_t type_version,
                                  struct str after, int64_t limit, entity_each *each, void *ctx);

/* --- state --- */

struct entity_state {
    int64_t type_version; /* whose handler wrote it */
    struct str state;     /* JSON */
};

MUST_CHECK enum err entity_states_find(struct db *db, int64_t entity, struct arena *arena,
                                       bool *ret_found, struct entity_state *ret);
MUST_CHECK enum err entity_states_put(struct db *db, int64_t entity,
                                      const struct entity_state *state);
MUST_CHECK enum err entity_states_delete(struct db *db, int64_t entity);

#endif
