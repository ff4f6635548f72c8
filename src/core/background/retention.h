/* Retention: removes ended runs past their tenant's retention period, oldest first, in slices. */
#ifndef PAWL_CORE_BACKGROUND_RETENTION_H
#define PAWL_CORE_BACKGROUND_RETENTION_H

#include "core/txn/tx.h"

/* The position of the walk over tenants and runs. */
struct retention {
    int64_t tenant;
    int64_t tenant_ms; /* its retention */
    int64_t run;
    int64_t trying; /* the run that is being removed */
};

/* One slice. Inside a transaction. *ret_more: there may be more to do at once. */
MUST_CHECK enum err retention_slice(struct retention *r, struct tx *tx, bool *ret_more);

/* After a slice that failed: the run that it failed with is left for the next walk. */
void retention_skip(struct retention *r);

#endif
