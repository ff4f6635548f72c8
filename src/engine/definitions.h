/* Parsed definitions kept from one transaction to the next: versions are immutable, so they never
 * go stale. Each connection has its own; bounded by DEFINITION_CACHE_MAX. */
#ifndef PAWL_ENGINE_DEFINITIONS_H
#define PAWL_ENGINE_DEFINITIONS_H

#include "domain/definition.h"
#include "store/db.h"

struct definitions;

MUST_CHECK struct definitions *definitions_new(void);
void definitions_free(struct definitions *cache);

/* Borrowed until definitions_trim(). ERR_WORKFLOW_NOT_FOUND when there is no such version. */
MUST_CHECK enum err definitions_get(struct definitions *cache, struct db *db, int64_t tenant,
                                    struct str workflow_id, int64_t version, struct problem *p,
                                    const struct definition **ret);

/* Between transactions: drops the longest unused above the bound. */
void definitions_trim(struct definitions *cache);

#endif
