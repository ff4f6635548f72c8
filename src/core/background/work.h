/* One transaction of background work. */
#ifndef PAWL_CORE_BACKGROUND_WORK_H
#define PAWL_CORE_BACKGROUND_WORK_H

#include "core/txn/tx.h"

struct work_env {
    int64_t now_ms;
    int64_t tenant,
        run; /* whose queued run was starting when the last transaction failed; 0: none */
};

/* Begins, calls `fn`, commits; on any error all of it is rolled back. If only queued runs could not
 * start that were to take slots freed by `fn`, they are left to WORK_DISPATCH. */
typedef enum err work_fn(void *ctx, struct tx *tx, struct problem *p);
MUST_CHECK enum err work_transaction(struct work_env *w, struct tx *tx, work_fn *fn, void *ctx,
                                     struct problem *p);

#endif
