/* What follows from an op before it is over. */
#include "core/run/follow_up.h"

#include "core/admission/run_slots.h"
#include "core/run/dispatch.h"

enum err follow_up(struct tx *tx, struct problem *p)
{
    if (!tx->dispatches_later) {
        enum err e = dispatch_freed(tx, p);
        tx->dispatch_failed |= e != ERR_OK;
        return e;
    }
    for (; tx->freed != NULL; tx->freed = tx->freed->next)
        dispatch_workflow(tx, tx->freed->tenant);
    return ERR_OK;
}
