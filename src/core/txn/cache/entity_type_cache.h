/* Cache of entity types and their versions, kept across the writer's transactions: every signal
 * and every call needs them, and they rarely change. When it is full, it forgets what was not used
 * for longest. */
#ifndef PAWL_CORE_TXN_CACHE_ENTITY_TYPE_CACHE_H
#define PAWL_CORE_TXN_CACHE_ENTITY_TYPE_CACHE_H

#include "store/entity/entities.h"

struct entity_type_cache;

MUST_CHECK struct entity_type_cache *entity_type_cache_new(void);
void entity_type_cache_free(struct entity_type_cache *kept); /* NULL is fine */
/* After a type was put, and after a rollback. */
void entity_type_cache_forget(struct entity_type_cache *kept);

/* Text is copied to the arena. */
MUST_CHECK enum err entity_type_cache_find(struct entity_type_cache *kept, struct db *db,
                                           int64_t tenant, struct str id, struct arena *arena,
                                           bool *ret_found, struct entity_type *ret);
MUST_CHECK enum err entity_type_cache_version(struct entity_type_cache *kept, struct db *db,
                                              int64_t type, int64_t version, struct arena *arena,
                                              bool *ret_found, struct entity_version *ret);

#endif
