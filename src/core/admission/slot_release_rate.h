/* How fast slots have been freeing, by tenant and by scope: the memory behind Retry-After. A guess
 * that is kept in memory only, bounded, and may be forgotten at any time. */
#ifndef PAWL_CORE_ADMISSION_SLOT_RELEASE_RATE_H
#define PAWL_CORE_ADMISSION_SLOT_RELEASE_RATE_H

#include "domain/admission/pace.h"

#include <stdbool.h>

struct paces;

/* NULL when memory ran out. */
struct paces *paces_new(void);
void paces_free(struct paces *paces);

/* scope 0: the tenant's own limit. */
void paces_freed(struct paces *paces, int64_t tenant, int64_t scope, int64_t now_ms);
int64_t paces_retry_after_s(const struct paces *paces, int64_t tenant, int64_t scope,
                            int64_t now_ms);

#endif
