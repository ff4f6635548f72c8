/* Parsed definitions kept from one transaction to the next: committed versions never change, so
 * they never go stale; only a rollback takes a version back. Each connection has its own; bounded
 * by DEFINITION_CACHE_MAX. */
#ifndef PAWL_CORE_TXN_CACHE_DEFINITION_CACHE_H
#define PAWL_CORE_TXN_CACHE_DEFINITION_CACHE_H

#include "domain/workflow/definition.h"
#include "store/db.h"

struct definition_cache;

MUST_CHECK struct definition_cache *definition_cache_new(void);
void definition_cache_free(struct definition_cache *cache);

/* Borrowed until definition_cache_trim(). ERR_WORKFLOW_NOT_FOUND when there is no such version. */
MUST_CHECK enum err definition_cache_get(struct definition_cache *cache, struct db *db,
                                         int64_t tenant, struct str workflow_id, int64_t version,
                                         struct problem *p, const struct definition **ret);

/* Between transactions: drops the longest unused above the bound. */
void definition_cache_trim(struct definition_cache *cache);
/* After a rollback: the version number, and even the tenant's, may be given to another. */
void definition_cache_forget(struct definition_cache *cache);

#endif
