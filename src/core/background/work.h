/* One transaction of background work. */
#ifndef PAWL_CORE_BACKGROUND_WORK_H
#define PAWL_CORE_BACKGROUND_WORK_H

#include "core/txn/tx.h"

struct work_env {
    int64_t now_ms;
    /* The queued run that was starting when the last transaction failed; 0: none. */
    int64_t tenant;
    int64_t run;
};

/* Runs `fn` in a transaction and commits; rolls back after any error. If only a queued run could
 * not start that was taking a slot that `fn` freed, `fn` runs again and WORK_DISPATCH starts queued
 * runs later. */
typedef enum err work_fn(void *ctx, struct tx *tx, struct problem *p);
MUST_CHECK enum err work_transaction(struct work_env *w, struct tx *tx, work_fn *fn, void *ctx,
                                     struct problem *p);

#endif
