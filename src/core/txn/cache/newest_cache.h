/* The newest version of each workflow that a connection has looked up. When the cache is full, the
 * workflow that was not used for longest is forgotten. */
#ifndef PAWL_CORE_TXN_CACHE_NEWEST_CACHE_H
#define PAWL_CORE_TXN_CACHE_NEWEST_CACHE_H

#include "base/str.h"
#include "store/db.h"

struct newest_cache;

struct workflow_newest {
    bool found;
    bool archived;
    int64_t version;
};

MUST_CHECK struct newest_cache *newest_cache_new(void);
void newest_cache_forget(struct newest_cache *cache);
void newest_cache_free(struct newest_cache *cache); /* NULL is fine */

/* Reads it if it is not here. A tenant that is not stored (0) has no workflows. */
MUST_CHECK enum err newest_cache_find(struct newest_cache *cache, struct db *db, int64_t tenant,
                                      struct str workflow_id, struct workflow_newest *ret);

#endif
