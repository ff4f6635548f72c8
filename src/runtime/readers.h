/* Threads that answer questions: each with a read-only connection of its own, a snapshot per op,
 * and a bound on how long a query may hold it. */
#ifndef PAWL_RUNTIME_READERS_H
#define PAWL_RUNTIME_READERS_H

#include "core/txn/op.h"
#include "core/txn/read_tx.h"

struct readers;

struct readers_config {
    struct str store_url;
    const struct env *env;
    int event_fd; /* written when there is something to collect */
    struct worker_polls *polls;
};

/* Opens READERS connections. */
MUST_CHECK enum err readers_start(const struct readers_config *config, struct problem *p,
                                  struct readers **ret);
/* Finishes what was pushed, then ends the threads. Collect once more afterwards. */
void readers_stop(struct readers *readers);
void readers_free(struct readers *readers);

void readers_push(struct readers *readers, struct op *op);
/* What is over, linked by `next`. */
struct op *readers_collect(struct readers *readers);

#endif
