/* Parsed definitions kept from one transaction to the next: committed versions never change, so
 * they never go stale; only a rollback takes a version back. Each connection has its own; bounded
 * by DEFINITION_CACHE_MAX. */
#ifndef PAWL_CORE_TXN_DEFINITION_CACHE_H
#define PAWL_CORE_TXN_DEFINITION_CACHE_H

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
/* After a rollback: the version number, and even the tenant's, may be given to another. */
void definitions_forget(struct definitions *cache);

#endif
