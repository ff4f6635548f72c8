/* What follows from an op before it is over. */
#include "engine/aftermath.h"

#include "engine/dispatch.h"
#include "engine/run_move.h"

static enum err cancel_doomed(struct tx *tx, struct problem *p)
{
    enum err e = ERR_OK;
    while (tx->doomed != NULL && e == ERR_OK) { /* a child may have children */
        struct uuid id = tx->doomed->run_id;
        tx->doomed = tx->doomed->next;
        struct run_move m;
        bool found = false; /* one that was removed needs no cancelling */
        e = run_move_load_if(&m, tx, uuid_time(id), p, &found);
        if (e == ERR_OK && found && !run_is_over(m.run.status))
            e = run_move_cancel(&m, STR("pawl"), STR("the run that it is a part of has ended"));
    }
    return e;
}

enum err aftermath(struct tx *tx, struct problem *p)
{
    enum err e = ERR_OK;
    while (e == ERR_OK && (tx->doomed != NULL || tx->freed != NULL)) {
        e = cancel_doomed(tx, p);
        if (e == ERR_OK)
            e = dispatch_freed(tx, p);
    }
    return e;
}
