/* Notes which queued runs may be able to start, and says whether free slots are theirs. Starting
 * them is core/run/dispatch.h. */
#ifndef PAWL_CORE_ADMISSION_DISPATCH_DUE_H
#define PAWL_CORE_ADMISSION_DISPATCH_DUE_H

#include "core/txn/tx.h"

/* A tenant's limit was raised. */
void dispatch_tenant(struct tx *tx);
/* The limits of a workflow of the tenant changed. */
void dispatch_workflow(struct tx *tx, int64_t tenant);
/* Anything may have changed. */
void dispatch_all(struct tx *tx);
/* Is there anything to look at? */
bool dispatch_is_due(const struct tx *tx);

/* Are queued runs of the tenant about to start? Then its free slots are theirs. */
MUST_CHECK enum err dispatch_concerns(struct tx *tx, const struct tenant *tenant, bool *ret);
/* Queue groups of the tenant wait for limit keys that may have room: until they have been looked
 * at, nobody knows which run is next. */
bool dispatch_is_unswept(const struct tx *tx, const struct tenant *tenant);
/* Is one more run below the tenant's own limit? */
bool tenant_has_room(const struct tenant *tenant);

/* Nothing of the tenant can be started, whatever room there is: its queue waits until then, and
 * those of others go on. */
void dispatch_set_aside(struct tx *tx, int64_t tenant, int64_t until_ms);
bool dispatch_is_aside(const struct tx *tx, int64_t tenant);
/* When the first of them comes back; -1: no tenant is set aside. */
int64_t dispatch_aside_until(const struct tx *tx);
/* Brings back those whose time has come. */
void dispatch_bring_back(struct tx *tx, int64_t now_ms);

#endif
