/* The settler: lets answers and effects go once their commits are on disk.
 *
 *   writer ──▶ batch k+1 executes ──▶ batch k+2 …
 *   settler     └ batch k syncs ──▶ its effects are published, its ops answered; k+1 syncs …
 *
 * The thread that has the writer's turn adds what it has committed. A sync that begins after that
 * covers it: the settler's thread makes it, or the HTTP loop's when it made the change itself. Ops
 * and effects leave in the order of commits. When a sync fails, nothing that waits for it leaves:
 * its ops are answered that the outcome is unknown, its effects are dropped. */
#ifndef PAWL_RUNTIME_SETTLER_H
#define PAWL_RUNTIME_SETTLER_H

#include "core/core.h"
#include "runtime/durability.h"
#include "runtime/publish.h"

struct settler;

struct settler_config {
    struct db *db; /* the writer's */
    struct durability *durability;
    const struct env *env;
    struct receivers receivers;
    struct metric *commit_seconds; /* of a batch, from its beginning until it is on disk */
};

/* Starts the thread. The caller owns *ret. */
MUST_CHECK enum err settler_start(const struct settler_config *config, struct problem *p,
                                  struct settler **ret);
/* Syncs what waits and ends the thread. Collect once more afterwards. */
void settler_stop(struct settler *settler);
void settler_free(struct settler *settler);

/* --- for the thread that has the writer's turn --- */

/* Ops that were decided, linked by `next`, and effects that were committed; either may be NULL.
 * Sync afterwards. */
void settler_add(struct settler *settler, struct op *first, struct effect_parcel *effects);
/* Has the settler's thread sync. */
void settler_sync_soon(struct settler *settler);
/* Syncs on this thread, if anything needs it; what was added has left when this returns. */
void settler_sync(struct settler *settler);
/* Is something committed that is not on disk? Then a sync on this thread would wait for another. */
bool settler_is_busy(struct settler *settler);
/* Waits until the sync of all that was committed has begun: the writer is one batch ahead of the
 * disk and no more, so that the ops that wait meanwhile go into one commit. */
void settler_wait(struct settler *settler);

/* --- for the HTTP loop's thread --- */

/* Takes the ops that may leave, in the order of commits, and the effects for publish_on_loop(). */
void settler_collect(struct settler *settler, struct op **ret_ops,
                     struct effect_parcel **ret_parcels);

#endif
